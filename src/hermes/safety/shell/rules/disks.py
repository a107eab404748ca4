"""Devices and file systems."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.safety.shell.path_classes import absolute, is_disk
from hermes.safety.shell.rules.model import Rule
from hermes.safety.shell.scope import names
from hermes.safety.shell.verdict import ALWAYS, OUTSIDE, REFUSE

if TYPE_CHECKING:
    from hermes.safety.shell.command import Command


def _on_device(command: Command) -> bool:
    return any(is_disk(absolute(word.text, command.scope)) for word in command.operands)


def _erases(command: Command) -> bool:
    if command.name == "nwipe":
        # Without being told which, it takes every disk that there is.
        return command.has("--autonuke") or _on_device(command)
    return _on_device(command) and (command.name != "badblocks" or command.has("-w"))


RULES = (
    Rule(
        "disk.overwrite",
        ALWAYS,
        "It writes straight onto a disk device and destroys what is on it.",
        programs="shred wipe scrub badblocks nwipe sg_format sg_sanitize",
        when=lambda command: _erases(command),
        severity=REFUSE,
        human_only=True,
        matches=(
            "dd if=/dev/zero of=/dev/sda",
            "cat image.iso > /dev/sdb",
            "cp image.iso /dev/nvme0n1",
            "shred -n1 /dev/sda",
            "echo x | sudo tee /dev/vda",
            "nwipe --autonuke --nowait",
        ),
        passes=("dd if=/dev/sda of=backup.img", "echo x > /dev/null", "ls /dev/sda", "shred file"),
    ),
    Rule(
        "disk.format",
        ALWAYS,
        "It makes a new file system or partition table on a disk device.",
        programs=(
            "mkfs mke2fs mkswap mkdosfs wipefs sfdisk sgdisk blkdiscard hdparm cryptsetup "
            "pvcreate newfs "
            "mkntfs nvme"
        ),
        when=lambda command: _formats(command),
        severity=REFUSE,
        human_only=True,
        matches=(
            "mkfs.ext4 /dev/sdb1",
            "wipefs -a /dev/sda",
            "mkfs -t xfs /dev/vdb",
            "blkdiscard /dev/nvme0n1",
        ),
        passes=("mkfs.ext4 disk.img", "wipefs /dev/sda", "sfdisk -l /dev/sda", "lsblk"),
    ),
    Rule(
        "disk.partitions",
        OUTSIDE,
        "It changes partitions, volumes or arrays.",
        programs=(
            "fdisk parted gdisk cfdisk lvremove vgremove pvremove lvresize mdadm zpool zfs btrfs "
            "diskutil "
            "tune2fs resize2fs e2fsck fsck xfs_repair growpart diskpart format dmsetup e2label "
            "fatlabel ntfslabel xfs_admin btrfstune lvchange vgchange"
        ),
        when=lambda command: _repartitions(command),
        matches=(
            "parted /dev/sda mklabel gpt",
            "fdisk /dev/sda",
            "zpool destroy tank",
            "zfs destroy tank/x",
        ),
        passes=("fdisk -l", "parted -l", "zpool status", "zfs list", "diskutil list"),
    ),
    Rule(
        "disk.mount",
        OUTSIDE,
        "It changes which file systems are attached, or how.",
        programs="mount umount swapoff swapon losetup",
        when=lambda command: _mounts(command),
        matches=("sudo mount /dev/sdb1 /mnt", "umount /mnt", "mount -o remount,rw /"),
        passes=("mount", "mount -l", "findmnt", "mount -t ext4"),
    ),
)


def _formats(command: Command) -> bool:
    name = command.name
    if not _on_device(command):
        return False
    if name == "wipefs":
        return command.has("-a", "--all", "-o", "--offset")
    if name in ("sfdisk", "sgdisk"):
        return not command.has("-l", "--list", "-d", "--dump", "-p", "--print", "-i", "-v")
    if name == "hdparm":
        return any("erase" in flag for flag in command.flags)
    if name == "nvme":
        return any(word.text in ("format", "sanitize") for word in command.operands)
    if name == "cryptsetup":
        return any(word.text in ("luksFormat", "erase", "luksErase") for word in command.operands)
    return True


_QUIET = names(
    "list status get show info print help history iostat check scrub-status subvolume-list "
    "filesystem-show df "
    "usage --version list-pools"
)


def _repartitions(command: Command) -> bool:
    name = command.name
    texts = [word.text for word in command.operands]
    if name in ("fdisk", "gdisk", "cfdisk", "parted"):
        return bool(texts) and not command.has("-l", "--list") and "print" not in texts
    if name == "format":
        return any(len(text) == 2 and text[1] == ":" for text in texts)
    if name in ("zpool", "zfs"):
        return texts[:1] and texts[0] in (
            "destroy",
            "rollback",
            "labelclear",
            "remove",
            "detach",
            "replace",
        )  # type: ignore[return-value]
    if name == "btrfs":
        return "delete" in texts
    if name == "diskutil":
        return bool(texts) and texts[0].lower().startswith(
            ("erase", "partition", "zero", "secure", "apfs", "reformat")
        )
    if name == "mdadm":
        return command.has("--stop", "--zero-superblock", "--remove", "--fail", "--create", "-S")
    if name in ("fsck", "e2fsck", "xfs_repair", "tune2fs"):
        return bool(texts) and not command.has("-n", "-N", "-l")
    if name == "dmsetup":
        return texts[:1] in (["remove"], ["remove_all"], ["wipe_table"])
    return bool(texts) or name == "diskpart"


def _mounts(command: Command) -> bool:
    if command.name == "losetup":
        return command.has("-d", "-D", "--detach")
    return bool(command.operands) or command.has("-a", "--all")
