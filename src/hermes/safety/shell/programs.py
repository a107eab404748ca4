"""Programs, as data: options with values, read-only uses, dry runs.

A table has a line for each group of programs that share a row; further lines of a row are indented.
"""

from __future__ import annotations

import re

from hermes.safety.shell.scope import names


def rows(text: str) -> dict[str, str]:
    """The value of each program in a table of `programs: value` or `programs = value` lines."""
    lines = text.strip().replace("\n ", "").split("\n")
    parts = (re.split(r"\s=\s|:", line, maxsplit=1) for line in lines)
    return {name: values.strip() for heads, values in parts for name in heads.split()}


def _sets(text: str) -> dict[str, frozenset[str]]:
    return {name: names(values) for name, values in rows(text).items()}


# Options that take the next word as their value. Without this a value would look like an operand:
# `kubectl -n prod delete pod x` deletes just as `kubectl delete pod x` does.
VALUED = _sets("""
git: -C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env
kubectl oc k9s minikube-kubectl microk8s.kubectl: -n --namespace --context --kubeconfig --cluster
  --user -s --server --token --as -o --output -l --selector -f --filename -c --container --timeout
  --cascade --grace-period -k --kustomize --replicas --field-selector
helm: -n --namespace --kube-context --kubeconfig --set -f --values --version --timeout
docker podman nerdctl docker-compose podman-compose: -H --host -c --context --config -l
  --log-level -f --file -p --project-name --env-file --profile
aws: --profile --region --output --endpoint-url --query --ca-bundle --cli-read-timeout
gcloud: --project --zone --region --format --filter --account --configuration
az: --name -n --resource-group -g --subscription -o --output --query
gsutil: -h -o
gh: -R --repo --hostname -X --method -f -F -H --jq -q
glab: -R --repo -X -f -F -H
terraform tofu: -target -var -var-file -state -lock-timeout
npm: --prefix -w --workspace --registry --loglevel --tag --otp
pnpm: --prefix -C --dir --filter -F --registry
yarn: --cwd --registry
pip: -r -c -t --target --prefix --root -i --index-url --extra-index-url -e --editable --python
cargo: --manifest-path --target-dir -p --package --features -j --color --registry
systemctl: -H --host -M --machine -t --type -p --property -n --lines -o --output -s --signal
  --kill-who
loginctl: -H -M
apt apt-get: -o -c -t --option --config-file --target-release
aptitude: -o -t
dnf yum: -c -x --repo --enablerepo --disablerepo --installroot
pacman: -r -b --root --dbpath --config
chmod chgrp: --reference
chown: --reference --from
cp mv ln: -t --target-directory -S --suffix
install: -t --target-directory -m --mode -o --owner -g --group -S --suffix
truncate: -s --size -r --reference
shred: -n --iterations -s --size --random-source
kill: -s -n --signal -q
pkill: -u -U -G -g -t -P -s --signal --uid --euid --parent --session --terminal
killall: -s --signal -u --user -o -y -n --ns
rsync: -e --rsh --exclude --include --exclude-from --include-from --filter -f --rsync-path
  --bwlimit --max-delete --log-file --password-file --backup-dir --partial-dir --temp-dir -T
  --chmod --chown --files-from --port --timeout --out-format --compare-dest --copy-dest
  --link-dest --info -B
scp: -i -P -F -o -c -J -l -S
sftp: -i -P -F -o -c -J -b -S
ssh: -i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B
autossh: -M -i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B
man: -P --pager -H --html -M -S -L
curl: -o --output -d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F
  --form -T --upload-file -H --header -X --request -u --user -A --user-agent -e --referer -b
  --cookie -c --cookie-jar -K --config -m --max-time --connect-timeout --retry --retry-delay -x
  --proxy -E --cert --key --cacert --output-dir -D --dump-header -w --write-out --url -r --range
  --resolve -C --form-string --interface --limit-rate -Y -y -z --unix-socket -Q --netrc-file
  --variable --expand-url
wget: -O --output-document -P --directory-prefix -o --output-file -a --append-output -t --tries -T
  --timeout -U --user-agent --header --post-data --post-file --body-data --body-file --method -i
  --input-file -e --execute --user --password -w --wait -l --level -A -R -D -I -X --load-cookies
  --use-askpass
http https: -o --output -a --auth --session --timeout --proxy
grep egrep fgrep: -e --regexp -f --file -m --max-count -A -B -C --include --exclude --exclude-dir
  --color -d
rg: -e --regexp -f --file -m -A -B -C -g --glob -t --type -T -j -r --replace --max-depth -M
  --color
sed gsed: -e --expression -f --file -l --line-length
awk gawk mawk nawk: -f --file -v --assign -F --field-separator -i --include -l -e --source -E
  --exec
head: -n --lines -c --bytes
tail: -n --lines -c --bytes -s --pid
sort: -k --key -t --field-separator -o --output -S -T --parallel --files0-from
cut: -d --delimiter -f --fields -c --characters -b
tar bsdtar gtar: -f --file -C --directory -T --files-from -X --exclude-from --exclude -I
  --use-compress-program --to-command --checkpoint-action --transform --xform -b --blocking-factor
  -N --newer -g -F --info-script --new-volume-script --rsh-command --rmt-command --owner --group
  --mode --strip-components
unzip: -d -x -P
7z: -o -p
zip: -x -i -b -t -P
patch: -i --input -o --output -d --directory -p --strip -r --reject-file -B -D -F
tee: --output-error
psql cockroach: -c --command -f --file -h --host -p --port -U --username -d --dbname -v --set -o
  --output -L --log-file -F -P -R -T
mysql mariadb: -e --execute -h --host -P --port -u --user -D --database -S --socket
  --default-character-set
sqlite3: -cmd -init -separator -newline -nullvalue -mmap -vfs
mongo mongosh: --eval --host --port -u --username -p --password --authenticationDatabase -f --file
redis-cli valkey-cli: -h -p -a -n -u --user --pass -s -r -i --eval --pipe-timeout --pattern --type
  --count --rdb --sni --cacert --cert --key --tls-ciphers -c -d -x -X
useradd: -d -g -G -s -u -c -e -k -p -b
nc ncat netcat: -p -s -w -i -x -X -q -e -c -g -G -I -O -P -T -V -b -m -o --source-port --exec
  --sh-exec
socat: -T -t -b
crontab: -u -c
hermes: --profile --home --config --model -m --toolset --session
bash sh zsh dash ksh: -o -O --rcfile --init-file
mount: -t -o -L -U
gpg: -o --output -r --recipient -u --local-user --homedir --passphrase --keyserver
journalctl: -u --unit -n --lines --since --until --vacuum-time --vacuum-size --vacuum-files -o -p
  -t -D
iptables ip6tables: -t -w
vault: -address -namespace -format -field
pulumi: -s --stack -C --cwd
heroku: -a --app -r --remote
fly flyctl: -a --app -c --config
ansible: -i -m -a -e -l -u -f -c --module-name --args --inventory --connection
ansible-playbook: -i -e -l -u -f -t --tags
make: -f --file -C --directory -j -l -o -W -I --eval -E
just: -f --justfile -d --working-directory --shell --shell-arg --set -c
code: --user-data-dir --extensions-dir -g --goto -d
vim vi nvim view: -c --cmd -S -s -u -U -i -T -w -W
ex: -c --cmd -S -u -i
split: -l --lines -b --bytes -n --number -C -a --suffix-length --filter
cpio: -D --directory -F -I -O -H -E
pax: -s -f -x -b -o -T
""")

# Read-only programs: no option of these writes or starts something.
PLAIN = names(
    "ls dir vdir cat tac nl head tail wc cut paste join comm cmp diff diff3 fold fmt expand "
    "unexpand rev od hexdump hd strings stat du df basename dirname realpath readlink pwd id "
    "whoami groups users who w uname cal uptime free vmstat lscpu lsblk lsusb lspci ps pgrep pidof "
    "pstree printenv locale getconf getent tty arch nproc true false : echo test [ [[ seq sleep "
    "factor md5sum sha1sum sha224sum sha256sum sha384sum sha512sum b2sum cksum sum tr column grep "
    "egrep fgrep zgrep jq which whereis type host dig nslookup netstat readelf last "
    "zcat bzcat xzcat zstdcat eza exa lsd cd pushd popd set shopt shift alias export declare "
    "typeset local readonly let getopts wait return exit break continue times dirs jobs unset"
)

# With one of these options they change something; all other uses only read.
EXCEPT = rows("""
sort: -o -T --output --compress-program --temporary-directory
shuf base64 base32: -o --output
tree: -o -R
file: -C --compile
rg: --pre --hostname-bin
ag bat batcat: --pager
fd fdfind: -x -X --exec --exec-batch
yq: -i -s --inplace --in-place --split-exp --split-exp-file
printf: -v
read:
mapfile readarray: -C
lsof: -D
ss: -K --kill
nm objdump size: --plugin
dmesg: -c -C -D -E -n --clear --read-clear --console-off --console-on --console-level
journalctl: --vacuum-size --vacuum-time --vacuum-files --rotate --flush --sync --setup-keys
  --update-catalog --relinquish-var --smart-relinquish-var --cursor-file
find gfind: -delete -fprint -fprint0 -fprintf -fls
""")

# The most operands with which these only read: one more would be written to, or set something.
MOST_OPERANDS = {"uniq": 1, "hostname": 0, "history": 0, "date": 0}
OPERANDS_EXCEPT = rows("""
uniq:
hostname: -F -b --file --boot
history: -c -d -a -n -r -w -p -s
date: -s --set
""")

# Programs that start the rest of their words; they change nothing if that does not.
OPENED = rows("""
nice timeout gtimeout stdbuf unbuffer setsid builtin command exec env watch xargs gxargs eval trap
  noglob nocorrect:
ionice: -p -P -u --pid
time: -o -f -a -v --output --format --append --verbose
taskset: -p --pid
busybox: --install
sudo: -e --edit -k -K -b --background
doas: -C -L
bash: -i --rcfile --init-file --login -l
sh dash: -i -l
zsh: -i -l --login
""")
# Of these, the ones that change nothing on their own either.
OPENED_ALONE = names("command exec env time builtin xargs gxargs trap eval")

# Programs | read-only subcommands | options that make even these change something. An empty
# subcommand is the program with options alone.
_SUBCOMMANDS = """
git | status, rev-parse, rev-list, ls-files, ls-tree, describe, name-rev, merge-base, show-ref,
  count-objects, check-ignore, check-attr, cherry, version, remote show, remote get-url, worktree
  list, bisect log, notes list, notes show, submodule status |
git | log, diff, show, diff-tree, diff-index, diff-files, range-diff, whatchanged, stash list,
  stash show, reflog show | --output --ext-diff --textconv
git | blame, annotate | --textconv
git | shortlog | --output
git | grep | -O --open-files-in-pager --textconv
git | ls-remote | --upload-pack --exec
git | cat-file | --textconv --filters
git | for-each-ref | --shell --perl --python --tcl
git | show-branch | --reflog
git | config list, config get | --unset --unset-all --replace-all --add --edit -e --remove-section
  --rename-section
git |  | -c
docker podman | ps, images, logs, inspect, version, info, top, port, diff, history, compose ps,
  compose logs, compose images, compose ls, compose top, container ls, container inspect,
  container logs, image ls, image inspect, volume ls, volume inspect, network ls, network inspect,
  context ls |
kubectl oc | get | --raw
kubectl oc | describe, logs, top, version, explain, api-resources, api-versions, config view,
  config current-context, config get-contexts, auth can-i, rollout status, rollout history |
kubectl oc | cluster-info | --output-directory
helm | list, ls, status, get, history, version |
systemctl | status, show, cat, is-active, is-enabled, is-failed, get-default, list-units,
  list-unit-files, list-timers, list-sockets, list-dependencies, list-jobs |
terraform | version, output, show, state list, state show |
pip | list, show, freeze, check,  | --log
npm | ls, list, view, root, prefix,  |
gh | pr list, pr view, pr diff, pr checks, pr status, issue list, issue view, issue status, run
  list, run view, repo view, release list, release view | -w --web
gh | auth status | -t --show-token
go | version |
go | env | -w -u
ip | a, a show, a list, a ls, addr, addr show, addr list, addr ls, address, address show, address
  list, address ls, r, r show, r list, r ls, route, route show, route list, route ls, l, l show, l
  list, l ls, link, link show, link list, link ls, n, n show, n list, n ls, neigh, neigh show,
  neigh list, neigh ls, rule, rule show, rule list, rule ls | -b -batch --batch
rustup | show, which, toolchain list, target list |
"""
SUBCOMMANDS: dict[str, dict[str, str]] = {}
for _line in _SUBCOMMANDS.strip().replace("\n ", "").split("\n"):
    _programs, _subs, _options = _line.split("|")
    for _program in _programs.split():
        _row = SUBCOMMANDS.setdefault(_program, {})
        _row.update((sub.strip(), _options.strip()) for sub in _subs.split(","))

# Subcommands of git that make something unless all their options are of these.
LISTING = _sets("""
branch: --abbrev --all --color --column --contains --format --ignore-case --list --merged
  --no-abbrev --no-color --no-column --no-contains --no-merged --points-at --remotes
  --show-current --sort --verbose -a -i -l -r -v -vv
tag: --color --column --contains --format --ignore-case --list --merged --no-column --no-contains
  --no-merged --points-at --sort -i -l -n
remote: --verbose -v
reflog:
symbolic-ref: --quiet --short -q
config: --bool --default --get --get-all --get-regexp --get-urlmatch --global --includes --int
  --list --local --name-only --null --path --show-origin --show-scope --system --type --worktree
  -l -z
""")
# Options that turn operands of these into questions.
LISTING_SWITCHES = _sets("""
branch tag: --contains --list --merged --no-contains --no-merged --points-at -l
config: --get --get-all --get-regexp --get-urlmatch
""")
# Settings that `git -c` may carry without starting anything.
GIT_SETTINGS = ("color.", "core.quotepath=", "core.pager=cat", "advice.", "pager.", "log.date=")
# `--version` of these prints one line.
VERSIONED = names(
    "python pypy pip node npm npx pnpm yarn bun deno cargo rustc rustup go java javac mvn gradle "
    "ruby gem bundle php composer perl lua gcc g++ cc c++ clang clang++ make cmake ninja meson "
    "docker podman kubectl helm terraform tofu aws gcloud az gh git bash sh zsh uv poetry pytest "
    "ruff mypy black psql mysql sqlite3 redis-cli curl wget tar gzip sed awk gawk dotnet swift"
)

# Dry runs, in any spelling: `_` and `-` are the same, and so are capitals.
DRY = names(
    "--dry-run --dryrun --dry --simulate --what-if --whatif --noop --no-op --no-act --just-print "
    "--recon --preview --preview-only --plan-only --print-only --no-execute --validate-only "
    "--check-only --test-only --show-only --list-only --assumeno --assume-no --pretend --why-run "
    "--syntax-check --configtest --validate-config -whatif -dryrun -dry-run -simulate"
)
# By program, where the option is short or means something else to others.
DRY_SHORT = _sets("""
rsync rclone stow borg just rename s3cmd restic zpool zfs hg prename brew wipefs sfdisk dovecot:
  -n
make bmake gmake: -n --question -q
nginx dhcpd php-fpm angie openvpn sshd: -t -T
httpd apachectl apache2ctl apache2: -t -S
apt apk apt-get aptitude: -s
lvremove lvchange vgremove pvremove vgchange tmpreaper rpm tmpwatch iptables-restore
  ip6tables-restore: -t --test
ansible ansible-playbook: -C --check --list-hosts --list-tasks
visudo nft: -c --check
haproxy: -c
pacman: -p --print
emerge: -p
zypper: -D
chef-client: -W
sgdisk: -P
fsck: -N -n
shutdown squid: -k
logrotate: -d --debug
postfix: check
pulumi: preview
""")
# They have no dry run, and not all of them stop at an option that they do not know.
NEVER_DRY = names(
    "rm grm unlink srm shred dd tee mv cp ln chmod chown chgrp truncate kill killall pkill reboot "
    "halt poweroff find xargs sh bash zsh dash ksh fish eval exec sudo env mkfs rmdir del erase rd "
    "reg format crontab tar unzip cat echo printf"
)
# Programs that carry code or commands, which a dry run leaves alone.
TRIED = names("parallel just make gmake bmake ansible bq task mask")
