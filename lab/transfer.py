# SPDX-License-Identifier: GPL-2.0
"""Files into and out of a node, as tar streams over the exec channel."""

import io
import os
import tarfile
from pathlib import Path

import image
from channel import Command, call
from common import LabError, UsageError

PROGRAM_DIR = "/usr/local/bin"
OTHER_DIR = "/root"
# Libraries from here are the node's own if it has them, see present().
SYSTEM_DIRS = ("/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/")


def split_spec(spec):
    """FILE[:DEST], as a path and a destination or None."""
    name, colon, dest = spec.partition(":")
    path = Path(name)
    if not path.exists():
        raise LabError(f"{name}: no such file or directory")
    if colon and not dest.startswith("/"):
        raise UsageError(f"{spec}: the destination must be an absolute path")
    return path, dest or None


def is_program(path):
    """An ELF file that can be run (a kernel module cannot)."""
    return path.is_file() and image.is_elf(path) and os.access(path, os.X_OK)


def target_of(path, dest):
    """Where a file goes; a destination with a final slash is a folder."""
    if dest is None:
        dest = PROGRAM_DIR + "/" if is_program(path) else OTHER_DIR + "/"
    if dest.endswith("/"):
        dest += path.resolve().name if path.name in ("", "..") else path.name
    return dest


def libraries_of(path):
    """All libraries of the ELF objects at or below a path."""
    files = [path] if path.is_file() else [
        file for file in path.rglob("*")
        if file.is_file() and not file.is_symlink()]
    found = set()
    for file in files:
        if file.suffix != ".ko" and os.access(file, os.R_OK) \
                and image.is_elf(file):
            found.update(image.libraries(file, os.environ))
    return found


def present(lab, node, paths):
    """Which of these paths the node has already."""
    script = 'for f; do [ -e "$f" ] && echo "$f"; done; true'
    out = call(lab, node, ["sh", "-c", script, "sh", *sorted(paths)])[1]
    return set(out.decode().splitlines())


def push(lab, node, specs):
    """Copy files and folders in, programs with the libraries they start with.

    Libraries keep the path they have on the host. A system library the node
    already has is left as it is, so that a pushed program never replaces the
    stock ones under the others.
    """
    wanted = [split_spec(spec) for spec in specs]
    libraries = set()
    for path, _ in wanted:
        libraries |= libraries_of(path)
    system = {path for path in libraries if path.startswith(SYSTEM_DIRS)}
    if system:
        libraries -= present(lab, node, system)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for path, dest in wanted:
            tar.add(path, target_of(path, dest), filter=as_root)
        for path in sorted(libraries):
            tar.add(os.path.realpath(path), path, filter=as_root)
    call(lab, node, ["tar", "-x", "-f", "-", "-C", "/"], stream.getvalue())


def as_root(info):
    """Files on a node belong to root, whoever pushed them."""
    info.uid = info.gid = 0
    info.uname = info.gname = "root"
    return info


def pull(lab, node, remote, local):
    """Copy one file or folder out."""
    command = Command(lab, node, ["tar", "-c", "-f", "-", "-C",
                                  os.path.dirname(remote) or "/root",
                                  os.path.basename(remote)])
    command.send(b"")
    data, errors = bytearray(), bytearray()
    while command.status is None:
        command.handle(data.extend, errors.extend)
    if command.status:
        raise LabError(f"node{node}: {errors.decode().strip()}")
    target = Path(local)
    if target.is_dir():
        target = target / os.path.basename(remote)
    with tarfile.open(fileobj=io.BytesIO(bytes(data))) as tar:
        top = os.path.basename(remote)
        for member in tar.getmembers():
            inside = os.path.relpath(member.name, top)
            place = target if inside == "." else target / inside
            if member.isdir():
                place.mkdir(parents=True, exist_ok=True)
            elif member.isfile():
                place.write_bytes(tar.extractfile(member).read())
                place.chmod(member.mode & 0o777)
