"""The functions of many languages that do something to the machine, by the last part of the name.

One table for all languages: the same effect has much the same names everywhere. Where a name is
common, the owners in front of the dot say which ones are meant; an empty owner is a plain call.
"""

from __future__ import annotations

import re

from hermes.safety.shell.tables import names

# Ruby, Perl, JavaScript, PHP, Lua, R, Julia, Elixir, Groovy, Go, Rust, Java, Kotlin, C, Swift.
DELETE_TREE = names(
    "rmtree remove_tree rm_rf rm_r rm_rf! rmdirSync remove_dir remove_entry remove_entry_secure "
    "secure_remove_entry rimraf rimrafSync emptyDirSync emptyDir removeSync RemoveAll "
    "remove_dir_all remove_all deleteRecursively deleteDirectory deleteDir deleteTree removeDir "
    "forceDelete cleanDirectory FileUtils.deleteQuietly delete_directory"
)
DELETE_ONE = names(
    "unlink unlinkSync delete remove safe_unlink rm rmSync rm_f rm! removeFile del deleteSync "
    "deleteIfExists remove_file Remove deleteFile removeItem delete_file"
)
_FILES = ("os", "File", "FileUtils", "fs", "fse", "fsp", "Deno", "file", "Files", "promises")
ONE_OWNERS = {
    "delete": ("File", "Files", "Storage", "Pathname"),
    "remove": _FILES,
    "rm": ("FileUtils", "fs", "fsp", "promises", "File", ""),
    "Remove": ("os",),
    "del": ("",),
    "delete_file": ("", "File"),
}
RUN = names(
    "system exec execSync execFile execFileSync spawn spawnSync shell_exec passthru popen "
    "proc_open execute capture2 capture2e capture3 pipeline popen3 fork_exec $ Command pcntl_exec "
    "posix_spawn execve execl execlp execv execvp system2 shell cmd ProcessBuilder run "
    "CommandContext"
)
RUN_OWNERS: dict[str, tuple[str, ...]] = {
    "execute": ("os",),
    "exec": (),
    "spawn": (),
    "Command": ("Deno", "exec"),
    "CommandContext": ("exec",),
    "pipeline": ("Open3",),
    "cmd": ("System", "os"),
    "shell": ("System", ""),
    "run": ("Process", ""),
}
NEVER_RUN = names(
    "re regex RegExp pattern query db client conn connection cursor knex pool stmt database sql"
)
WRITE = names(
    "writeFileSync writeFile appendFileSync appendFile file_put_contents write createWriteStream "
    "writeTextFile binwrite WriteFile writeString FileWriter PrintWriter FileOutputStream write! "
    "outputFileSync outputFile writeText appendText"
)
WRITE_OWNERS = {"write": ("File", "fs", "IO", "Files", "Deno", "Bun", "file")}
WRITE_SECOND = names(
    "rename renameSync copyFile copyFileSync mv cp symlink symlinkSync ln_s copy move cp_r Rename "
    "Symlink moveSync copySync"
)
OPEN = names("open fopen OpenFile openSync gzopen file")
CREATE = names("create Create")
CREATE_OWNERS = ("File", "os", "fs", "file")
TRUNCATE = names("truncate truncateSync ftruncate Truncate set_len")
TRUNCATE_OWNERS = ("", "File", "fs", "fsp", "promises", "os", "Deno")
CHMOD = names("chmod chmodSync Chmod fchmod lchmod chmod_R set_permissions from_mode fchmodSync")
# They call the function whose name they are given.
CALLERS = names("array_map array_walk call_user_func call_user_func_array public_send send method")
READ = names(
    "readFileSync readFile file_get_contents readfile fpassthru show_source createReadStream "
    "lines read slurp readlines readTextFile binread ReadFile "
    "read_to_string readAllBytes readAllLines readString readLines"
)
CONNECT = names(
    "fsockopen TCPSocket Socket connect socket createConnection create_connection Dial "
    "TcpStream gen_tcp stream_socket_client pfsockopen socketConnection"
)
LISTEN = names("createServer TCPServer ServerSocket TcpListener stream_socket_server")
STATEMENTS = names(
    "query execute exec do raw prepare executeUpdate Exec execute_sql $executeRawUnsafe "
    "$executeRaw execute_batch QueryRow dbExecute dbSendQuery dbSendStatement statement unprepared"
)
KILL = names("kill posix_kill Kill pskill")
SQL = re.compile(r"\s*(?:drop|delete|truncate|update|alter)\s+(?![-./])", re.I)
# Functions that give one path for several pieces, or the path that they are given.
JOIN = names("join joinpath resolve file_path path")
THROUGH = names(
    "expand_path realpath abspath absolute_path new Path Pathname File URI get of PathBuf from "
    "normalize toString to_s path expand fileURLToPath String Paths as_str into tilde"
)
FORMATS = names("format sprintf Sprintf vsprintf strformat format!")
LISTING = names("glob Dir Dir.glob readdirSync list.files Dir.children readdir globSync children")
SILENT = names(
    "my our local const let var new await val final auto mut return path.join File.join os.path "
    "path.resolve static"
)
SET_ID = re.compile(r"\A0?o?[2467][0-7]{3}\Z|S_IS[UG]ID|^[ugoa]*[+=][rwxt]*s")
# A source that names none of these does nothing that is looked for here.
ALL = (
    DELETE_TREE
    | DELETE_ONE
    | RUN
    | WRITE
    | WRITE_SECOND
    | OPEN
    | CREATE
    | TRUNCATE
    | CHMOD
    | CALLERS
    | READ
    | STATEMENTS
    | KILL
    | {"new"}
)
