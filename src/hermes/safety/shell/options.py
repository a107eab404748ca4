"""Which options of which programs take the next word as their value.

Without this a value would look like an operand: `kubectl -n prod delete pod x` deletes just as
`kubectl delete pod x` does. Programs that are not listed take none.
"""

from __future__ import annotations

_AWS = "--profile --region --output --endpoint-url --query --ca-bundle --cli-read-timeout"
_KUBE = (
    "-n --namespace --context --kubeconfig --cluster --user -s --server --token --as -o --output "
    "-l "
    "--selector -f --filename -c --container --timeout --cascade --grace-period -k --kustomize "
    "--replicas --field-selector"
)
_DOCKER = (
    "-H --host -c --context --config -l --log-level -f --file -p --project-name --env-file "
    "--profile"
)

_TABLE = {
    "git": "-C -c --git-dir --work-tree --namespace --exec-path --super-prefix --config-env",
    "kubectl": _KUBE,
    "oc": _KUBE,
    "k9s": _KUBE,
    "helm": "-n --namespace --kube-context --kubeconfig --set -f --values --version --timeout",
    "docker": _DOCKER,
    "podman": _DOCKER,
    "nerdctl": _DOCKER,
    "docker-compose": _DOCKER,
    "podman-compose": _DOCKER,
    "aws": _AWS,
    "gcloud": "--project --zone --region --format --filter --account --configuration",
    "az": "--name -n --resource-group -g --subscription -o --output --query",
    "gsutil": "-h -o",
    "gh": "-R --repo --hostname -X --method -f -F -H --jq -q",
    "glab": "-R --repo -X -f -F -H",
    "terraform": "-target -var -var-file -state -lock-timeout",
    "tofu": "-target -var -var-file -state -lock-timeout",
    "npm": "--prefix -w --workspace --registry --loglevel --tag --otp",
    "pnpm": "--prefix -C --dir --filter -F --registry",
    "yarn": "--cwd --registry",
    "pip": (
        "-r -c -t --target --prefix --root -i --index-url --extra-index-url -e --editable --python"
    ),
    "cargo": "--manifest-path --target-dir -p --package --features -j --color --registry",
    "systemctl": (
        "-H --host -M --machine -t --type -p --property -n --lines -o --output -s --signal "
        "--kill-who"
    ),
    "loginctl": "-H -M",
    "apt": "-o -c -t --option --config-file --target-release",
    "apt-get": "-o -c -t --option --config-file --target-release",
    "aptitude": "-o -t",
    "dnf": "-c -x --repo --enablerepo --disablerepo --installroot",
    "yum": "-c -x --repo --enablerepo --disablerepo --installroot",
    "pacman": "-r -b --root --dbpath --config",
    "chmod": "--reference",
    "chown": "--reference --from",
    "chgrp": "--reference",
    "cp": "-t --target-directory -S --suffix",
    "mv": "-t --target-directory -S --suffix",
    "ln": "-t --target-directory -S --suffix",
    "install": "-t --target-directory -m --mode -o --owner -g --group -S --suffix",
    "truncate": "-s --size -r --reference",
    "shred": "-n --iterations -s --size --random-source",
    "kill": "-s -n --signal -q",
    "pkill": "-u -U -G -g -t -P -s --signal --uid --euid --parent --session --terminal",
    "killall": "-s --signal -u --user -o -y -n --ns",
    "rsync": (
        "-e --rsh --exclude --include --exclude-from --include-from --filter -f --rsync-path "
        "--bwlimit "
        "--max-delete --log-file --password-file --backup-dir --partial-dir --temp-dir -T --chmod "
        "--chown "
        "--files-from --port --timeout --out-format --compare-dest --copy-dest --link-dest --info "
        "-B"
    ),
    "scp": "-i -P -F -o -c -J -l -S",
    "sftp": "-i -P -F -o -c -J -b -S",
    "ssh": "-i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B",
    "autossh": "-M -i -p -l -o -F -J -L -R -D -W -b -c -e -m -E -I -O -Q -S -w -B",
    "man": "-P --pager -H --html -M -S -L",
    "curl": (
        "-o --output -d --data --data-raw --data-binary --data-ascii --data-urlencode --json -F "
        "--form -T "
        "--upload-file -H --header -X --request -u --user -A --user-agent -e --referer -b "
        "--cookie -c "
        "--cookie-jar -K --config -m --max-time --connect-timeout --retry --retry-delay -x "
        "--proxy -E --cert "
        "--key --cacert --output-dir -D --dump-header -w --write-out --url -r --range --resolve -C "
        "--form-string --interface --limit-rate -Y -y -z --unix-socket -Q --netrc-file --variable "
        "--expand-url"
    ),
    "wget": (
        "-O --output-document -P --directory-prefix -o --output-file -a --append-output -t "
        "--tries -T --timeout "
        "-U --user-agent --header --post-data --post-file --body-data --body-file --method -i "
        "--input-file -e "
        "--execute --user --password -w --wait -l --level -A -R -D -I -X --load-cookies "
        "--use-askpass"
    ),
    "http": "-o --output -a --auth --session --timeout --proxy",
    "https": "-o --output -a --auth --session --timeout --proxy",
    "grep": (
        "-e --regexp -f --file -m --max-count -A -B -C --include --exclude --exclude-dir --color -d"
    ),
    "rg": (
        "-e --regexp -f --file -m -A -B -C -g --glob -t --type -T -j -r --replace --max-depth -M "
        "--color"
    ),
    "sed": "-e --expression -f --file -l --line-length",
    "awk": "-f --file -v --assign -F --field-separator -i --include -l -e --source -E --exec",
    "head": "-n --lines -c --bytes",
    "tail": "-n --lines -c --bytes -s --pid",
    "sort": "-k --key -t --field-separator -o --output -S -T --parallel --files0-from",
    "cut": "-d --delimiter -f --fields -c --characters -b",
    "tar": (
        "-f --file -C --directory -T --files-from -X --exclude-from --exclude -I "
        "--use-compress-program "
        "--to-command --checkpoint-action --transform --xform -b --blocking-factor -N --newer -g "
        "-F "
        "--info-script --new-volume-script --rsh-command --rmt-command --owner --group --mode "
        "--strip-components"
    ),
    "unzip": "-d -x -P",
    "7z": "-o -p",
    "zip": "-x -i -b -t -P",
    "patch": "-i --input -o --output -d --directory -p --strip -r --reject-file -B -D -F",
    "tee": "--output-error",
    "dd": "",
    "psql": (
        "-c --command -f --file -h --host -p --port -U --username -d --dbname -v --set -o "
        "--output -L "
        "--log-file -F -P -R -T"
    ),
    "mysql": (
        "-e --execute -h --host -P --port -u --user -D --database -S --socket "
        "--default-character-set"
    ),
    "sqlite3": "-cmd -init -separator -newline -nullvalue -mmap -vfs",
    "mongo": "--eval --host --port -u --username -p --password --authenticationDatabase -f --file",
    "redis-cli": "-h -p -a -n -u --user --pass -s -r -i --eval --pipe-timeout "
    "--pattern --type --count --rdb --sni --cacert --cert --key --tls-ciphers -c -d -x -X",
    "docker-machine": "",
    "useradd": "-d -g -G -s -u -c -e -k -p -b",
    "nc": "-p -s -w -i -x -X -q -e -c -g -G -I -O -P -T -V -b -m -o --source-port --exec --sh-exec",
    "socat": "-T -t -b",
    "crontab": "-u -c",
    "hermes": "--profile --home --config --model -m --toolset --session",
    "bash": "-o -O --rcfile --init-file",
    "mount": "-t -o -L -U",
    "openssl": "",
    "gpg": "-o --output -r --recipient -u --local-user --homedir --passphrase --keyserver",
    "journalctl": (
        "-u --unit -n --lines --since --until --vacuum-time --vacuum-size --vacuum-files -o -p -t "
        "-D"
    ),
    "iptables": "-t -w",
    "ip6tables": "-t -w",
    "vault": "-address -namespace -format -field",
    "pulumi": "-s --stack -C --cwd",
    "heroku": "-a --app -r --remote",
    "fly": "-a --app -c --config",
    "flyctl": "-a --app -c --config",
    "ansible": "-i -m -a -e -l -u -f -c --module-name --args --inventory --connection",
    "ansible-playbook": "-i -e -l -u -f -t --tags",
    "make": "-f --file -C --directory -j -l -o -W -I --eval -E",
    "just": "-f --justfile -d --working-directory --shell --shell-arg --set -c",
    "code": "--user-data-dir --extensions-dir -g --goto -d",
    "vim": "-c --cmd -S -s -u -U -i -T -w -W",
    "ex": "-c --cmd -S -u -i",
    "split": "-l --lines -b --bytes -n --number -C -a --suffix-length --filter",
    "cpio": "-D --directory -F -I -O -H -E",
    "pax": "-s -f -x -b -o -T",
    "diskutil": "",
    "sgdisk": "",
}
VALUED: dict[str, frozenset[str]] = {name: frozenset(text.split()) for name, text in _TABLE.items()}
_SAME = {
    "mariadb": "mysql",
    "vi": "vim",
    "nvim": "vim",
    "view": "vim",
    "mongosh": "mongo",
    "gawk": "awk",
    "mawk": "awk",
    "nawk": "awk",
    "egrep": "grep",
    "fgrep": "grep",
    "gsed": "sed",
    "bsdtar": "tar",
    "gtar": "tar",
    "ncat": "nc",
    "netcat": "nc",
    "minikube-kubectl": "kubectl",
    "microk8s.kubectl": "kubectl",
    "doas": "sudo",
    "cockroach": "psql",
    "valkey-cli": "redis-cli",
    "sh": "bash",
    "zsh": "bash",
    "dash": "bash",
    "ksh": "bash",
}
for _name, _like in _SAME.items():
    if _like in VALUED:
        VALUED[_name] = VALUED[_like]
NO_VALUES: frozenset[str] = frozenset()
