"""Writes to the operating system, by any program, and what runs with more rights."""

from __future__ import annotations

from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import OUTSIDE

# Looking at the machine as root is what these are for.
USUAL_AS_ROOT = names(
    "tcpdump tshark perf iotop iftop htop top atop btop nethogs nmap ping traceroute mtr tracepath "
    "dmidecode lshw hwinfo blkid smartctl nvme ethtool iw iwlist arp lsmod modinfo dpkg-query "
    "updatedb locate needrestart sync bpftrace powertop sensors turbostat efibootmgr "
    "lvs vgs pvs lvdisplay vgdisplay pvdisplay lvscan vgscan pvscan findmnt xfs_info dumpe2fs "
    "iostat mpstat sar pidstat lsscsi lsns lslocks lsipc repquota"
)

RULES = (
    Rule(
        "system.write",
        OUTSIDE,
        "It changes files that belong to the operating system.",
        matches=(
            "echo x > /etc/hosts",
            "sudo cp app /usr/local/bin/",
            "sudo sed -i s/a/b/ /etc/ssh/sshd_config",
            "tar xzf a.tgz -C /usr/local",
            "ln -sf /x /usr/bin/python",
            "mv a /boot/grub/grub.cfg",
        ),
        passes=(
            "cat /etc/hosts",
            "cp /etc/hosts .",
            "echo x > etc/hosts",
            "echo x > /dev/null",
            "ls /usr/bin",
        ),
    ),
    Rule(
        "system.elevated-write",
        OUTSIDE,
        "It writes outside the project and home with another user's rights.",
        matches=("sudo cp a /opt/app/", "echo x | sudo tee /srv/x.conf", "sudo touch /opt/x"),
        passes=("sudo cp a b", "cp a /opt/app/", "sudo touch /tmp/x"),
    ),
    Rule(
        "system.elevated-script",
        OUTSIDE,
        "It runs a script or build with another user's rights.",
        matches=(
            "sudo bash install.sh",
            "sudo make install",
            "sudo python3 setup.py install",
            "sudo bash < setup",
            "sudo python3 -m installer",
            "sudo mytool",
            "alias ls='rm -rf'; sudo ls",
        ),
        passes=(
            "bash install.sh",
            "make install",
            "sudo ls",
            "sudo sh -c 'ls /root'",
            "sudo python3 -c 'print(1)'",
            "sudo tcpdump -i eth0",
        ),
    ),
)
