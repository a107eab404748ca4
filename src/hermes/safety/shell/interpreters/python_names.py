"""The functions of Python that do something to the machine, by their full names."""

from __future__ import annotations

from hermes.safety.shell.tables import names

DELETE_ONE = frozenset(("os.remove", "os.unlink"))
DELETE_TREE = names(
    "shutil.rmtree os.removedirs distutils.dir_util.remove_tree "
    "setuptools.distutils.dir_util.remove_tree"
)
RUN_TEXT = names(
    "os.system os.popen subprocess.getoutput subprocess.getstatusoutput commands.getoutput "
    "popen2.popen2 "
    "asyncio.create_subprocess_shell pexpect.run pexpect.spawn platform.popen os.popen2 os.popen3 "
    "get_ipython().system"
)
RUN_LIST = names(
    "subprocess.run subprocess.call subprocess.check_call subprocess.check_output "
    "subprocess.Popen pty.spawn "
    "sh.Command"
)
RUN_ARGUMENTS = frozenset(("asyncio.create_subprocess_exec",))
WRITE_FIRST = names("os.truncate os.mkdir os.makedirs os.chmod os.chown")
WRITE_SECOND = names(
    "os.rename os.replace os.renames shutil.move shutil.copy shutil.copy2 shutil.copyfile "
    "shutil.copytree "
    "os.symlink os.link urllib.request.urlretrieve"
)
COPIES = names(
    "shutil.copy shutil.copy2 shutil.copyfile shutil.copytree os.symlink os.link "
    "urllib.request.urlretrieve"
)
NETWORK = names(
    "urllib.request.urlopen urllib.urlopen urllib2.urlopen requests.get requests.post requests.put "
    "requests.request requests.patch httpx.get httpx.post httpx.put httpx.patch httpx.request "
    "aiohttp.request http.client.HTTPSConnection "
    "http.client.HTTPConnection urllib3.request"
)
BUILTINS = names("open exec eval compile")
# Functions that take in the file whose name they are given.
READERS = names(
    "read readlines load fromfile loadtxt genfromtxt read_csv read_table read_json dotenv_values "
    "netrc getlines upload_file upload_from_filename add_file make_archive"
)
# Methods of connections and clients that carry what they are given away.
SENDERS = names("send sendall sendto request post put patch sendmail send_message putrequest")
PRINTED = names("keyring.get_password keyring.get_credential netrc.netrc")
UNPICKLES = names("pickle.loads pickle.load marshal.loads dill.loads cloudpickle.loads")
METHODS = names(
    "unlink write_text write_bytes touch mkdir read_text read_bytes open rename replace execute "
    "executescript executemany rmtree write get_password get_credential loads run_path netrc glob "
    "iglob exec_command sudo"
)
WATCHED = names(
    "exec eval open connect connect_ex create_connection bind listen dup2 chdir fork kill killpg "
    "HTTPServer TCPServer ThreadingHTTPServer ThreadingTCPServer test"
)
TELLING_NAMES = (
    METHODS
    | READERS
    | SENDERS
    | WATCHED
    | frozenset(
        name.rpartition(".")[2]
        for table in (
            DELETE_ONE,
            DELETE_TREE,
            RUN_TEXT,
            RUN_LIST,
            RUN_ARGUMENTS,
            WRITE_FIRST,
            WRITE_SECOND,
            NETWORK,
        )
        for name in table
    )
)
# By these a function may be known that is named where others call it.
HANDED_ON = frozenset(
    name.rpartition(".")[2]
    for table in (DELETE_ONE, DELETE_TREE, RUN_TEXT, RUN_LIST)
    for name in table
)
TELLING_STARTS = ("exec", "spawn", "posix_spawn")
