"""The table of all rules, by key, and their forms by program.

`tests/data/rule_examples.jsonl` has commands that each rule finds and others that it leaves alone.
"""

from __future__ import annotations

from hermes.safety.shell.rules.model import Rule, by_program
from hermes.safety.shell.verdict import ALWAYS, INSIDE, OUTSIDE, REFUSE, REMOTE

_MIRROR = "--delete|--delete-before|--delete-after|--delete-during|--delete-excluded|--del"
_PACKERS = "7z: -sdel {0}; zip: -m|--move {0}; tar|bsdtar|gtar: --remove-files {0}"
_LOOKING = "list|show|test|get|status|path|explain|help|ls|check|validate"
_ENDS = "destroy|delete|remove|rm|reset|purge"
_DESTROY = "|".join([_ENDS, *(f"*{sign}{verb}" for sign in ":-" for verb in _ENDS.split("|"))])
_TERRAFORM = "terraform|tofu|terragrunt"
_NPM = "npm|yarn|pnpm"

# fmt: off
_ROWS = (
    # This machine's content: unreadable text, deletes, disks, permissions, git
    Rule("text.unreadable", OUTSIDE,
         "The text is not a complete shell command, so its effect is unknown."),
    Rule("text.unreadable-code", OUTSIDE,
         "The inline code can't be parsed, so its effect is unknown."),
    Rule("text.too-complex", OUTSIDE,
         "The command is nested or multiplied beyond the limits of the analysis."),
    Rule("text.hidden-characters", OUTSIDE,
         "The text holds a NUL character, which programs read differently."),
    Rule("text.unknown-program", OUTSIDE,
         "Which program runs is decided only when the command runs."),
    Rule("process.fork-bomb", ALWAYS,
         "It starts copies of itself without end and brings the machine down.",
         severity=REFUSE, human_only=True),

    Rule("delete.root-or-home", ALWAYS,
         "It deletes the root directory or a whole home directory.",
         severity=REFUSE, human_only=True),
    Rule("delete.recursive", INSIDE,
         "It deletes a directory with everything in it."),
    Rule("delete.glob", INSIDE,
         "It deletes every file that fits a pattern."),
    Rule("delete.several", INSIDE,
         "It deletes more than one file."),
    Rule("delete.each", INSIDE,
         "It deletes every result of a search, a list or a loop."),
    Rule("delete.unknown", INSIDE,
         "The file that it deletes is decided only when it runs."),
    Rule("delete.outside", OUTSIDE,
         "It deletes a file outside the working directory."),
    Rule("delete.moved-home", OUTSIDE,
         "It moves a whole home directory or the root away."),
    Rule("delete.emptied", INSIDE,
         "It empties a file."),
    Rule("delete.truncated", INSIDE,
         "It cuts a file to a size and loses the rest.",
         "truncate gtruncate", "@shrinks"),
    Rule("delete.overwritten", INSIDE,
         "It overwrites a file with nothing.",
         "cp install", "/dev/null +"),
    Rule("delete.linked-away", INSIDE,
         "It replaces a file by a link to nothing.",
         "ln gln", "/dev/null + -f|--force"),
    Rule("delete.emptied-by-tee", INSIDE,
         "It empties a file.",
         "tee sponge", "+ !-a|--append @fed_nothing"),
    Rule("delete.overwritten-by-dd", INSIDE,
         "It overwrites a file with nothing.",
         "dd", "~if=/dev/null"),
    Rule("delete.shredded", INSIDE,
         "It destroys the contents of files beyond recovery.",
         "shred wipe srm scrub bleachbit"),
    Rule("delete.mirrored", INSIDE,
         "It deletes at the target all that the source does not have.",
         "rsync rclone",
         f"{_MIRROR}|--remove-source-files|--delete-delay|--delete-missing-args !-n|--dry-run"),
    Rule("delete.mirrored-remote", REMOTE,
         "It deletes at a remote target all that the source does not have.",
         "rsync", f"{_MIRROR} !-n|--dry-run @to_remote"),
    Rule("delete.mirrored-home", ALWAYS,
         "It would empty the root or a home directory by mirroring something else onto it.",
         "rsync", f"{_MIRROR} !-n|--dry-run @onto_everything",
         severity=REFUSE, human_only=True),
    Rule("delete.remote-sync", REMOTE,
         "It deletes files of a remote store.",
         "rclone", "sync|purge|delete|deletefile|rmdirs|move|cleanup !-n|--dry-run"),
    Rule("delete.archived", INSIDE,
         "It deletes the files that it has packed.",
         forms=_PACKERS.format("")),
    Rule("delete.archived-home", ALWAYS,
         "It deletes a whole home directory or the root after packing it.",
         forms=_PACKERS.format("@of_everything"), severity=REFUSE, human_only=True),
    Rule("delete.trash", OUTSIDE,
         "It empties the trash.",
         forms="trash-empty:; gio: --empty"),
    Rule("windows.delete-everything", ALWAYS,
         "It deletes a whole drive or home directory.",
         severity=REFUSE, human_only=True),
    Rule("windows.delete-tree", INSIDE,
         "It deletes a directory with everything in it."),
    Rule("windows.delete-many", INSIDE,
         "It deletes more than one file, or a file that is not named."),
    Rule("windows.delete-each", INSIDE,
         "It deletes each of the files that a command before it lists.",
         "% foreach-object foreach", "@deletes_each"),
    Rule("windows.mirrored", INSIDE,
         "It deletes at the target all that the source does not have.",
         "robocopy", "%/mir|/purge|/mov|/move !%/l"),
    Rule("windows.emptied", INSIDE,
         "It empties a file.",
         forms="clear-content|clc:; set-content|sc: @sets_null"),

    Rule("disk.overwrite", ALWAYS,
         "It writes straight onto a disk device and destroys the data on it.",
         "shred wipe scrub nwipe sg_format sg_sanitize",
         "@on_disk; badblocks: -w @on_disk; nwipe: --autonuke",
         severity=REFUSE, human_only=True),
    Rule("disk.format", ALWAYS,
         "It makes a new file system or partition table on a disk device.",
         "mkfs mke2fs mkswap mkdosfs blkdiscard pvcreate newfs mkntfs",
         "@on_disk; wipefs: -a|--all|-o|--offset @on_disk; hdparm: -*erase* @on_disk;"
         "sfdisk|sgdisk: !-l|--list|-d|--dump|-p|--print|-i|-v @on_disk;"
         "nvme: ~format|sanitize @on_disk; cryptsetup: ~luksFormat|erase|luksErase @on_disk",
         severity=REFUSE, human_only=True),
    Rule("disk.written", ALWAYS,
         "It writes to a disk device, over all that is on it.",
         "*", "@writes_disk", severity=REFUSE, human_only=True),
    Rule("windows.disk", ALWAYS,
         "It formats or wipes a disk.",
         "format-volume clear-disk initialize-disk remove-partition",
         ";format|cipher: @names_drive; cipher: %/w*", severity=REFUSE, human_only=True),
    Rule("disk.partitions", OUTSIDE,
         "It changes partitions, volumes or arrays.",
         "lvremove vgremove pvremove lvresize resize2fs growpart e2label fatlabel ntfslabel "
         "xfs_admin btrfstune lvchange vgchange",
         "+; fdisk|gdisk|cfdisk|parted: + !-l|--list !~print; format: @names_drive; diskpart:;"
         "zpool|zfs: destroy|rollback|labelclear|remove|detach|replace; btrfs: ~delete;"
         "diskutil: erase*|partition*|zero*|secure*|apfs*|reformat*;"
         "mdadm: --stop|--zero-superblock|--remove|--fail|--create|-S;"
         "fsck|e2fsck|xfs_repair|tune2fs: + !-n|-N|-l; dmsetup: remove|remove_all|wipe_table"),
    Rule("disk.mount", OUTSIDE,
         "It changes which file systems are attached, or how.",
         "mount umount swapoff swapon", "+; -a|--all; losetup: -d|-D|--detach"),

    Rule("permissions.recursive", INSIDE,
         "It changes permissions or owners of everything below a directory.",
         "chmod chown chgrp setfacl chattr xattr", "-R|--recursive"),
    Rule("permissions.many", INSIDE,
         "It changes permissions or owners of many files at once.",
         "chmod chown chgrp", "@many_modes"),
    Rule("permissions.world-writable", INSIDE,
         "It lets everyone on the machine write there.",
         "chmod", "@world_writable"),
    Rule("permissions.set-uid", OUTSIDE,
         "It lets a program run with its owner's rights.",
         "chmod install ginstall mkdir rsync cp", "@sets_id"),
    Rule("permissions.capabilities", OUTSIDE,
         "It gives a program rights that belong to root.",
         "setcap", "+ !-v|-h"),
    Rule("permissions.system", OUTSIDE,
         "It changes permissions or owners of system files.",
         "chmod chown chgrp chattr", "@of_system"),

    Rule("git.discards-work", INSIDE,
         "It throws away uncommitted or unreferenced work.",
         "git",
         "reset --hard|--merge|--keep; checkout -f|--force|-B;"
         "checkout !-b|-B|--orphan|-p|--patch @names_files;"
         "restore !-p|--patch|--staged|-S; restore !-p|--patch --worktree|-W;"
         "switch -f|--force|--discard-changes|-C|--force-create; stash drop|clear;"
         "branch -D|-M|-C; branch + -f|--force; branch -d|--delete|-m|--move -f|--force;"
         "worktree remove -f|--force; clean -f|--force|-x|-X|-d !-n|--dry-run;"
         "rm !--cached|-n|--dry-run -r|-f|--force; rm !--cached|-n|--dry-run +2;"
         "rm !--cached|-n|--dry-run @takes_many; reflog expire|delete; gc --prune*;"
         "tag -d|--delete; tag + -f|--force; filter-branch|filter-repo|replay;"
         "update-ref -d|--delete|--stdin; update-ref +2; symbolic-ref|replace -d|--delete;"
         "prune !-n|--dry-run; submodule deinit -f|--force; read-tree --reset; read-tree -u -m;"
         "checkout-index -f|--force; notes remove|prune"),
    Rule("delete.home-cleaned", ALWAYS,
         "It deletes everything in a home directory or the root that git does not track.",
         "git", "clean -f|--force -d !-n|--dry-run @at_home", severity=REFUSE, human_only=True),
    Rule("git.other-systems", INSIDE,
         "It throws away work in another version control system.",
         "svn hg jj fossil bzr",
         "revert|strip|purge|rollback|abandon|cleanup; update|up -C|--clean"),
    Rule("git.hooks", OUTSIDE,
         "It makes git run a program of someone's choice from now on.",
         "git",
         "config !--get|--get-all|--list|-l|--get-regexp|--unset|--show-origin @plants_program"),
    Rule("git.command-transport", OUTSIDE,
         "It fetches through a command that the address itself names.",
         "git", "~ext::*; --upload-pack|--receive-pack"),
    # The system: its files, accounts, services, packages, start-up files, unread code, Hermes
    Rule("system.write", OUTSIDE,
         "It changes files that belong to the operating system."),
    Rule("system.elevated-write", OUTSIDE,
         "It writes outside the project and home with another user's rights."),
    Rule("system.elevated-script", OUTSIDE,
         "It runs a script or build with another user's rights."),
    Rule("accounts.changed", OUTSIDE,
         "It adds, removes or changes user accounts, groups or who may become root.",
         "useradd adduser userdel deluser usermod groupadd groupdel groupmod addgroup delgroup "
         "gpasswd chpasswd vipw vigr visudo chsh chfn newusers sysadminctl pw pwconv homectl realm",
         ";passwd: !-S|--status|--list; chage: !-l|--list; net: user|localgroup|group|accounts +2;"
         "dscl: -create|-delete|-append|-passwd|-merge|-change"),
    Rule("accounts.root-shell", OUTSIDE,
         "It opens a shell with all rights, in which nothing is checked any more.",
         human_only=True),
    Rule("services.changed", OUTSIDE,
         "It starts, stops or reconfigures a system service or a kernel setting.",
         "supervisorctl pm2 rc-update update-rc.d chkconfig sv initctl sc net",
         "~stop|restart|reload|delete|kill|shutdown|remove|disable|off|down|start|del|config|"
         "defaults|enable|add; systemctl: !status|show|list-units|list-unit-files|list-timers|"
         "list-sockets|list-jobs|is-active|is-enabled|is-failed|cat|help|list-dependencies|"
         "get-default|show-environment|is-system-running|list-machines;"
         "service|rc-service: * !status; brew: services !list|info; a2ensite|a2dissite:;"
         "launchctl: !list|print|print-disabled|help|version|dumpstate|blame; nginx: -s;"
         "apachectl: ~stop|restart|graceful|start; sysctl: -w|--write|-p|--load|--system;"
         "sysctl: ~*=*"),
    Rule("services.by-bus", OUTSIDE,
         "It asks a manager of the system to stop, change or shut down something.",
         "busctl gdbus dbus-send qdbus qdbus6", "@changes_by_bus"),
    Rule("services.kernel", OUTSIDE,
         "It loads or removes kernel modules or changes how the machine boots.",
         "modprobe insmod rmmod depmod update-grub grub-install grub-mkconfig efibootmgr kexec "
         "dracut mkinitcpio update-initramfs bootctl bcdedit nvram csrutil",
         "!-l|--list|-v|--version|-p|--show-depends|-n !~status|list"),
    Rule("services.logs-cleared", OUTSIDE,
         "It deletes system logs.",
         forms="journalctl: --vacuum*|--rotate*|--flush*; wevtutil: ~cl; auditctl: -D|-e;"
         "logrotate: -f|--force"),
    Rule("power.off", OUTSIDE,
         "It shuts the machine down, restarts it or sends it to sleep.",
         "shutdown reboot halt poweroff pm-suspend pm-hibernate restart-computer stop-computer",
         "!-c|--version; init|telinit: 0|6|1|s; rtcwake: !-l !~no|show;"
         "loginctl: ~poweroff|reboot|terminate-user|kill-session|terminate-session"),
    Rule("process.kill-by-name", OUTSIDE,
         "It kills every process that fits a name.",
         "killall pkill killall5 skill slay taskkill xkill fkill kill-port killport",
         "!-l|--list|-V|--version|-0"),
    Rule("process.kill-all", OUTSIDE,
         "It kills processes that are not named one by one.",
         "kill", "@kills_many; fuser: -k|--kill"),
    Rule("packages.system", OUTSIDE,
         "It installs, removes or upgrades software for the whole machine.",
         "apt apt-get aptitude dnf dnf5 yum microdnf zypper apk pkg opkg rpm-ostree tdnf "
         "xbps-install xbps-remove eopkg urpmi swupd",
         "install|remove|purge|autoremove|upgrade|dist-upgrade|full-upgrade|reinstall|erase|"
         "downgrade|localinstall|groupinstall|swap|add|del|dup|patch|build-dep|autoclean|clean|"
         "unhold|hold|mark|system-upgrade|rebase|override|uninstall|rollback|deinstall|delete|"
         "refresh|in|rm|up|ref|si !--download-only|--print-uris;"
         "dpkg: -i|--install|-r|--remove|-P|--purge|--force-all|--configure|--unpack;"
         "rpm: -i|-U|-e|-F|--install|--erase|--upgrade !-q; nix-collect-garbage:;"
         "pacman|yay|paru: -S|--sync !-s|-i|-l|-g|-p; pacman|yay|paru: -R|-U|--remove;"
         "brew|port: uninstall|remove|rm|autoremove|tap|untap|upgrade|cleanup|install|reinstall|"
         "unlink; snap|flatpak: install|remove|refresh|uninstall|update|revert|disable;"
         "nix-env: -i|-e|-u|--install|--uninstall|--upgrade|-iA;"
         "emerge|slackpkg|installpkg|removepkg|pkgin|pkg_add|pkg_delete|dpkg-reconfigure|alien: "
         "!-p|--pretend|-s|--search; softwareupdate: -i|--install|-a;"
         "winget|choco|scoop: install|uninstall|upgrade|remove|update"),
    Rule("packages.system-language", OUTSIDE,
         "It installs packages into the system's own language runtime.",
         "pipx gem npm yarn pnpm cpan easy_install",
         "install|i|uninstall|add|global|remove|update @elevated;"
         "pip: install|uninstall --break-system-packages; pip: install|uninstall @elevated;"
         "pip: install|uninstall @into_system"),
    Rule("system.settings", OUTSIDE,
         "It changes settings of the whole machine.",
         "tccutil ldconfig locale-gen dpkg-divert pam-auth-update authconfig",
         ";timedatectl|hostnamectl|localectl: ~set-*; hostname: + !-*; date: -s|--set;"
         "defaults: write|delete; dconf|gsettings: write|set|reset|load;"
         "spctl: --master-disable|--global-disable|--disable|--add; pmset: !-g; pmset: +;"
         "tmutil: ~delete|disable|deletelocalsnapshots|removedestination;"
         "hwclock: -w|-s|--set|--systohc|--hctosys; scutil|systemsetup: -*set*;"
         "update-alternatives|alternatives: --install|--set|--remove|--config|--auto|--remove-all"),
    Rule("network.firewall", OUTSIDE,
         "It changes firewall rules, routes or network interfaces.",
         "setenforce iptables-restore ip6tables-restore",
         ";iptables|ip6tables|ebtables|arptables: !-L|--list|-S|--list-rules|-C|--check|-V|"
         "--version|-h; nft: !list|describe|monitor; ufw: !status|version|show|app;"
         "firewall-cmd: !--list*|--get*|--state*|--query*|--info*; pfctl: !-s|-n; pfctl: -d|-F;"
         "ip|route: ~add|del|delete|flush|change|replace|set; ifconfig: ~down|up; ifconfig: +2;"
         "resolvectl: dns|domain|revert|dnssec +2; netsh: ~set|add|delete|reset;"
         "nmcli: ~down|delete|off|modify|disconnect|add"),
    Rule("windows.distribution-removed", OUTSIDE,
         "It deletes a Linux distribution of this machine with everything in it.",
         "wsl", "--unregister|--uninstall"),
    Rule("windows.registry", OUTSIDE,
         "It changes the Windows registry.",
         "set-itemproperty remove-itemproperty new-itemproperty regedit",
         ";reg: %add|delete|import|restore|load|copy"),
    Rule("windows.security", OUTSIDE,
         "It weakens protection or changes services, accounts or the firewall.",
         "set-mppreference add-mppreference set-executionpolicy stop-service set-service "
         "restart-service disable-netfirewallrule set-netfirewallprofile new-localuser "
         "add-localgroupmember netsh takeown bcdedit disable-windowsoptionalfeature "
         "new-netfirewallrule remove-service spps clear-eventlog clear-recyclebin remove-localuser "
         "reset-computermachinepassword new-service disable-computerrestore enable-psremoting "
         "set-acl",
         ";stop-process: @of_one_process; start-process: %runas; vssadmin|wbadmin: %delete|resize;"
         "icacls: %/grant*|/t*|/reset*|/setowner*"),
    Rule("windows.startup-file", OUTSIDE,
         "It changes the file that every PowerShell runs when it starts.",
         "add-content set-content out-file new-item copy-item move-item tee-object ac sc ni cpi "
         "clear-content notepad code", "@of_profile"),

    Rule("persist.startup-file", OUTSIDE,
         "It changes a file that runs at every login, shell start, commit or boot."),
    Rule("persist.schedule", OUTSIDE,
         "It schedules commands to run later, or removes scheduled ones.",
         "atrm register-scheduledtask new-scheduledtask set-scheduledtask",
         ";crontab: !-l; at|batch: !-l|-V|-c; schtasks: %/create|/change|/delete"),
    Rule("persist.trusted-code", OUTSIDE,
         "It lets an editor run code of a file from now on.",
         "code codium cursor windsurf", "%*.vsix"),
    Rule("persist.package-source", OUTSIDE,
         "It changes where a package manager gets code from, or which shell runs its scripts.",
         "npm pnpm yarn pip", "config set @changes_source; set @changes_source"),
    Rule("persist.login-key", REMOTE,
         "It gives a key access to a machine or account.",
         forms="ssh-copy-id: !-n; gh: ssh-key|gpg-key add"),
    Rule("persist.lingering", OUTSIDE,
         "It lets a user's services run without a login.",
         "loginctl", "enable-linger"),

    Rule("remote-code.pipe", OUTSIDE,
         "It runs code straight from the network or out of a decoder, unread."),
    Rule("remote-code.substitution", OUTSIDE,
         "It runs text that was downloaded or decoded a moment before."),
    Rule("remote-code.downloaded", OUTSIDE,
         "It runs a file that the same command has just downloaded."),
    Rule("remote-code.package", OUTSIDE,
         "It installs or runs code straight from an address that no registry keeps.",
         "pip pipx uv uvx npx bunx npm pnpm yarn bun deno cargo", "@runs_package"),
    Rule("remote-code.unknown-input", OUTSIDE,
         "An interpreter reads commands that are known only when it runs."),
    Rule("remote-code.windows", OUTSIDE,
         "It lets a program of the system fetch, decode or run code from elsewhere.",
         "mshta regsvr32 rundll32 msiexec cscript wscript installutil hh control odbcconf cmstp",
         "@takes_address; certutil: %*urlcache*|*decode*;"
         "bitsadmin: %*transfer*|*addfile*|*notify*; wmic: ~call ~create; wmic: ~delete|terminate"),
    Rule("loader.injection", OUTSIDE,
         "It makes later programs load code from somewhere else.",
         "ld.so ld-linux", "--preload|--audit"),

    Rule("hermes.policy", ALWAYS,
         "It changes the rights of Hermes itself: its permissions, approvals or trust.",
         "hermes",
         f"approvals|approval|permissions|policy !{_LOOKING}; memory !{_LOOKING}|history;"
         f"mcp !{_LOOKING}|tools|logs|diff|serve; trust|untrust|yolo !~list|show|status;"
         f"config !{_LOOKING} @sets_gate", severity=REFUSE, human_only=True),
    Rule("hermes.configuration", ALWAYS,
         "It changes Hermes' configuration.",
         "hermes", f"config !{_LOOKING}"),
    Rule("hermes.files", ALWAYS,
         "It changes files that Hermes keeps for itself."),
    Rule("hermes.environment", ALWAYS,
         "It points Hermes at other settings than its own.",
         human_only=True),
    Rule("hermes.unguarded", ALWAYS,
         "It starts Hermes with approvals answered in advance.",
         "hermes",
         "--yolo|--no-approval|--dangerously-skip-permissions; @relaxes;"
         "call|run|chat|batch|cron|serve|resume -y|--yes*|--approve-all|--auto-approve",
         human_only=True),
    Rule("agent.unguarded", ALWAYS,
         "It starts an agent with its approvals off.",
         "claude codex gemini qwen aider goose opencode cursor-agent copilot amp droid crush "
         "openhands cline kiro kiro-cli q auggie plandex interpreter gptme kimi",
         "@unguarded; cursor-agent: -f; gemini|qwen: -y; aider: --yes|--yes-always",
         human_only=True),
    # Others: shared history, services, clouds, clusters, databases, listeners, secrets
    Rule("git.rewrites-remote", REMOTE,
         "It rewrites or deletes branches or tags on the server.",
         "git",
         "push|send-pack -f|--force*|-d|--delete|--mirror|--prune !-n|--dry-run;"
         "push|send-pack !-n|--dry-run @rewrites_refs; config @forces_pushes;"
         "http-push --force|-d|-D !--dry-run"),
    Rule("git.other-remote", REMOTE,
         "It rewrites or deletes the shared history of another version control system.",
         "svn hg jj fossil bzr", "push -f|--force|--deleted; delete|del|rm|remove ~*://*"),
    Rule("cloud.resource-destroyed", REMOTE,
         "It deletes something that a service keeps: stored objects, queues, machines, backups.",
         "ibmcloud velero multipass virsh vboxmanage qm pct lxc incus s3cmd s5cmd mc b2 swift "
         "ossutil hdfs hadoop rabbitmqctl rabbitmqadmin kafka-topics kafka-topics.sh nats "
         "pulsar-admin vault argocd flux istioctl openstack govc supabase firebase netlify "
         "wrangler railway pscale turso neonctl cf nomad etcdctl consul influx",
         "@destroys_resource"),
    Rule("cloud.destroyed", REMOTE,
         "It deletes or stops cloud resources, or changes who may use them.",
         "aws gcloud az bq",
         "@destroys_cloud; aws: s3 sync --delete; role assignment create;"
         "compute firewall-rules create; gsutil: rm|rb|mv; gsutil: rsync -d;"
         "gsutil: iam|acl set|ch"),
    Rule("infrastructure.changed", REMOTE,
         "It changes or destroys the infrastructure that a plan describes.",
         "terraform",
         f"{_TERRAFORM}: destroy|apply|taint|force-unlock; {_TERRAFORM}: workspace delete;"
         f"{_TERRAFORM}: state rm|mv|push|replace-provider; terragrunt: run-all destroy|apply;"
         "pulumi: destroy|down|dn|up|update|cancel; pulumi: stack rm; pulumi: state delete;"
         "cdk|sls|serverless|sam|copilot|eb|eksctl|kops|amplify|sst|cdktf: "
         "destroy|remove|delete|terminate; copilot: app delete; vagrant: destroy;"
         "vagrant: box remove; kind|minikube|k3d|doctl|hcloud|linode-cli|civo|scw|ibmcloud|oci: "
         "~delete|destroy|rm|remove|terminate; nomad|consul: stop; nomad: job stop;"
         "nomad: system gc; consul: kv delete; puppet: apply|agent !--noop;"
         "puppet: resource ~*=*; ansible-playbook: +"),
    Rule("registry.published", REMOTE,
         "It publishes a package for everyone, which can't be taken back.",
         "npm pnpm lerna cargo poetry uv flit hatch pdm vsce ovsx jsr",
         "publish !-n|--dry-run; yarn: publish|npm publish; yarn: npm publish; twine: upload;"
         "gem|helm: push; mvn|mvnw: ~deploy|release:perform; gradle|gradlew: ~publish*;"
         "dotnet|nuget: nuget push; nuget: push; mix: hex.publish; pod: trunk push;"
         "goreleaser: release !--snapshot|--skip*; semantic-release|release-it: !~*dry*;"
         "sbt|lein|deno: publish|deploy"),
    Rule("messages.sent", REMOTE,
         "It sends a message to other people.",
         "sendmail mailx mutt neomutt msmtp swaks ssmtp",
         ";mail: +; slack|slackcat|slack-cli: ~send|post|chat|upload; signal-cli|telegram-send:;"
         "discord-cli|matrix-commander: +"),
    Rule("registry.removed", REMOTE,
         "It removes published packages, repositories, deployments or the access to them.",
         "heroku fly flyctl vercel netlify railway firebase supabase wrangler pscale neonctl",
         f"~{_DESTROY}; {_NPM}: unpublish|deprecate|owner|access; {_NPM}: dist-tag rm;"
         f"yarn: npm unpublish|deprecate|owner; {_NPM}: token create|revoke; {_NPM}: team destroy;"
         f"{_NPM}: profile set; cargo|gem: yank|owner;"
         "gh|glab: repo edit --visibility|--default-branch;"
         "gh|glab: pr|mr close|merge -d|--delete-branch|--remove-source-branch;"
         "gh|glab: !api delete|archive|delete-asset|transfer|disable; hub: delete;"
         "gh|glab: secret|variable remove; hub: release delete; crane|regctl|skopeo|oras: delete;"
         "crane|regctl|skopeo|oras: * delete; crane|regctl|skopeo|oras: tag rm"),
    Rule("containers.destroyed", REMOTE,
         "It removes containers, volumes, images or networks with the data in them.",
         "docker podman nerdctl docker-compose podman-compose",
         "system|volume|image|container|network|builder|buildx|pod prune|reset;"
         "volume|network|container|pod rm|remove; down -v|--volumes|--rmi;"
         "rm -f|--force|-v|--volumes|-s; rm +2; rmi -f|--force; rmi +2; prune;"
         "kill|stop|rm|restart @from_output;"
         "swarm|node|stack|service|secret|config|context|plugin rm|leave|remove|demote;"
         "ctr|crictl: ~rm|rmi|rmp|remove|delete|prune"),
    Rule("containers.escape", REMOTE,
         "It gives a container the rights or the files of this machine.",
         "docker podman nerdctl docker-compose podman-compose",
         "run|create|exec @escapes; container run @escapes"),
    Rule("kubernetes.destroyed", REMOTE,
         "It deletes, drains or restarts resources of a cluster.",
         "kubectl oc k kubecolor",
         "delete|drain|cordon|taint|evict; adm drain|cordon|taint|evict; adm ~prune; adm policy +;"
         "policy +; create clusterrolebinding|rolebinding; rollout undo|restart; replace --force;"
         "scale @scales_to_zero; apply --prune|--force;"
         "config delete-context|delete-cluster|delete-user|unset"),
    Rule("kubernetes.release-removed", REMOTE,
         "It removes or rolls back a release in a cluster.",
         "helm helmfile flux argocd",
         "uninstall|delete|del|un|rollback|destroy; * delete; upgrade --force|--force-replace"),
    Rule("database.drop", REMOTE,
         "It drops tables, databases or other stored definitions.",
         "dropdb dropuser pg_dropcluster",
         ";mysqladmin: ~drop|shutdown|flush-hosts|password; pg_restore: -c|--clean;"
         "pg_ctl|pg_ctlcluster: ~stop|restart; mongorestore: --drop; influx|etcdctl: del|delete;"
         "influx|etcdctl: * delete"),
    Rule("database.empty", REMOTE,
         "It deletes every row of a table."),
    Rule("database.rewrite", REMOTE,
         "It changes every row of a table."),
    Rule("database.reset", REMOTE,
         "It drops or resets a whole application database.",
         "rails rake",
         "~db:drop*|db:reset*|db:purge*|db:schema:load*|db:migrate:reset*|db:truncate_all*;"
         "manage|manage.py|django-admin: flush|reset_db; alembic: downgrade base;"
         "manage|manage.py|django-admin: migrate ~zero; prisma: migrate reset;"
         "prisma: db push --force-reset|--accept-data-loss; mix: ecto.drop|ecto.reset;"
         "console: ~doctrine:fixtures:load !--append; dotnet: ~database ~drop;"
         "php|artisan|sail: %migrate:fresh*|migrate:reset*|migrate:refresh*|db:wipe*;"
         "sequelize|sequelize-cli|knex|typeorm: "
         "~db:drop|db:migrate:undo:all|migrate:rollback|schema:drop;"
         "flask: db downgrade; flask: drop-db|drop_all"),
    Rule("service.destroyed", REMOTE,
         "It tells a program that manages something to delete, empty or reset it.",
         "*", "@destroys"),
    Rule("service.deleted-by-request", REMOTE,
         "It asks a remote service to delete or overwrite something.",
         "*", "@deletes_by_request"),
    Rule("network.open-address", REMOTE,
         "It listens on every address of this machine, open to others.",
         "*", "@opens_to_all"),
    Rule("network.debugger", REMOTE,
         "It lets everyone who connects run a program under a debugger.",
         "gdbserver dlv lldb-server", "%:[0-9]*|--listen=:[0-9]*|-l=:[0-9]*"),
    Rule("network.reverse-shell", REMOTE,
         "It connects a shell on this machine to someone else.",
         "nc ncat netcat", "-e|-c|--*exec*; socat: %*exec:*|*system:*|*shell:*", human_only=True),
    Rule("network.raw-socket", REMOTE,
         "It talks to a network address through the shell itself."),
    Rule("network.listener", REMOTE,
         "It opens a port to other machines.",
         "localtunnel lt bore chisel frpc frps ttyd gotty sshd telnetd dropbear vsftpd webfsd "
         "updog "
         "localhost.run serveo tmate upterm sshx pagekite zrok rathole frp inlets gs-netcat "
         "wstunnel netserver",
         "!--version; nc|ncat|netcat: -l|--listen @binds_openly; socat: %*-listen*|*-recv*;"
         "ssh|autossh: -R|-g; ssh|autossh: @binds_openly; php: -S ~0.0.0.0*;"
         "iperf|iperf3: -s|--server @binds_openly; tailscale: funnel|serve; tailscale: --ssh;"
         "httpd: -p|-f|-h; ngrok: !version|help|config|update;"
         "cloudflared: ~tunnel !~ingress|validate|list|info|token|login|create|rule|help|diag"),
    Rule("network.raw-send", REMOTE,
         "It sends data of unknown content to another machine.",
         "nc ncat netcat socat telnet", "@sends_unknown"),
    Rule("secrets.read", OUTSIDE,
         "It reads a private key or a store of credentials."),
    Rule("secrets.sent", REMOTE,
         "It sends credentials or the environment to another machine.",
         "curl wget http https xh httpie curlie", "@sends_secret", human_only=True),
    Rule("secrets.sent-by-name", REMOTE,
         "It carries the output of a command away inside a name lookup or ping.",
         "nslookup dig host drill ping ping6 getent resolvectl whois", "@looks_up_output"),
    Rule("secrets.sent-on", REMOTE,
         "It hands credentials to a program that sends them on.",
         "mail mutt sendmail ssh scp sftp rclone xclip pbcopy gh glab slack nc ncat netcat socat "
         "telnet ftp openssl gpg", "@sends_on"),
    Rule("secrets.printed", OUTSIDE,
         "It prints a secret out of a credential store.",
         "mimikatz lazagne unshadow ssh2john gpg2john",
         ";gpg: --export-secret*; git: credential ~fill; gh|glab: auth token;"
         "security: find-generic-password|find-internet-password|dump-keychain|export;"
         "git: config --get|--get-all|--get-regexp @of_credentials; git: config get "
         "@of_credentials;"
         "gh: auth status -t|--show-token; aws: secretsmanager get-secret-value;"
         "aws: configure export-credentials; aws: configure get aws_secret_access_key;"
         "aws: sts get-session-token; aws: ssm --with-decryption; kubectl|oc: create token;"
         "kubectl|oc: config view --raw|--flatten; kubectl|oc: get @shows_secret; vault: read;"
         "vault: kv get; op: read; op: item get; secret-tool: lookup|search; cmdkey: %/list;"
         "pass: !ls|find|grep|git|init|help|insert|generate; getent: shadow|gshadow;"
         "keyctl: print|read|pipe; openssl: rsa|pkey|ec|pkcs12 @shows_private_key;"
         "gcloud: auth print-access-token|print-identity-token; gcloud: secrets versions access;"
         "gcloud: auth application-default print-access-token; gcloud: sql generate-login-token;"
         "gcloud: iam service-accounts keys create; az: account get-access-token;"
         "az: keyvault secret|key show|download; az: storage account keys list;"
         "az: acr credential show; az: ad sp create-for-rbac; bw: get password|item|notes;"
         "bw: list|export; lpass: show|export; heroku: config|config:get|auth:token;"
         "heroku: pg:credentials:url; npm: token list|create; npm: config get _authtoken;"
         "doppler|infisical: secrets|export; chamber: read|export|env; gopass: show|cat|otp;"
         "sops: decrypt|exec-env; ansible-vault: view|decrypt; fly|flyctl: auth token;"
         "fly|flyctl: tokens create; railway: variables; databricks: secrets get-secret;"
         "databricks: auth token; databricks: tokens create; oci: secrets secret-bundle get;"
         "docker-credential-desktop|docker-credential-osxkeychain|docker-credential-pass|"
         "docker-credential-secretservice|git-credential-osxkeychain: get|list;"
         "doctl: auth token; doctl: registry docker-config"),
)
# fmt: on
RULES: dict[str, Rule] = {rule.key: rule for rule in _ROWS}
FORMS = by_program(_ROWS)
FORMS_FOR_ANY = tuple(FORMS.pop("*")[""])
# A command that a program starts was judged already: its verbs are not this program's.
FORMS_FOR_OPENED = tuple(form for form in FORMS_FOR_ANY if form.key != "service.destroyed")
