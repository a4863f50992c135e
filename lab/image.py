# SPDX-License-Identifier: GPL-2.0
"""The initramfs of a node: busybox, tools with their libraries, modules."""

import hashlib
import lzma
import os
import re
import shutil
import stat
import subprocess
import tempfile
import time
from pathlib import Path

from common import HERE, LabError, cache_dir
from process import locked, run

PROGRAMS = """
    ip rdma nft tc bash dash modprobe insmod rmmod lsmod depmod modinfo setpriv dmesg
    ib_write_bw ib_write_lat ib_read_bw ib_read_lat ib_send_bw ib_send_lat
    ib_atomic_bw ib_atomic_lat
    ibv_devices ibv_devinfo ibv_asyncwatch ibv_rc_pingpong ibv_uc_pingpong
    ibv_ud_pingpong ibv_srq_pingpong
    rping ucmatose udaddy rdma_server rdma_client cmtime qperf
""".split()

# libibverbs warns about each provider it is told of and cannot load; programs that
# end a thread (rping) load the other one, which ldd does not show.
PLUGINS = ["/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so",
           "/lib/x86_64-linux-gnu/libgcc_s.so.1"]
FILES = ["/etc/libibverbs.d/rxe.driver"]

# Loaded at boot or on demand by the kernel or a test; dependencies follow.
MODULES = """
    virtio_pci virtio_net virtio_console crc32_generic crc32c_generic dummy macvlan 8021q
    rdma_rxe ib_uverbs rdma_ucm rdma_cm ib_core ib_umad
    nf_tables nft_numgen nft_fwd_netdev nft_dup_netdev nft_limit nft_quota
    nft_ct nft_log nft_chain_nat nft_reject_inet
    sch_netem sch_ingress sch_prio sch_tbf sch_htb cls_u32 cls_bpf cls_flower
    cls_matchall act_gact act_mirred act_police
    null_blk nvme_rdma nvmet nvmet_rdma rds rds_rdma smc smc_diag
    rpcrdma nfs nfsv4 nfsd ext4 ib_iser ib_isert ib_srp ib_srpt
    target_core_mod iscsi_target_mod sd_mod
""".split()

BUSYBOX = "/bin/busybox"


def libraries(program, environ=None):
    """The shared objects a program is started with, as absolute paths."""
    done = subprocess.run(["ldd", str(program)], env=environ, text=True,
                          capture_output=True, check=False)
    found = re.findall(r"(?:=> |^\s*)(/\S+) \(0x", done.stdout, re.M)
    lost = re.findall(r"^\s*(\S+) => not found", done.stdout, re.M)
    if lost:
        raise LabError(f"{program}: library not found: {', '.join(lost)}")
    return found


def is_elf(path):
    """Whether a file is a dynamic or static ELF object."""
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def build_tool(source, target, *flags):
    """Compile one of the lab's own C programs."""
    target.parent.mkdir(parents=True, exist_ok=True)
    run("cc", "-O2", "-Wall", *flags, "-o", target, source)


def tool(name):
    """A host program built from lab/<name>.c, cached by content."""
    source = HERE / f"{name}.c"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:12]
    target = cache_dir() / f"lab-{name}-{digest}"
    if not target.exists():
        partial = target.with_suffix(f".{os.getpid()}")
        build_tool(source, partial)
        os.rename(partial, target)
    return target


def module_closure(modules):
    """Paths of the wanted modules and all they need, relative to the tree."""
    paths = {}
    needs = {}
    for line in (modules / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        paths[module_name(path)] = path
        needs[path] = rest.split()
    wanted = [paths[name] for name in MODULES if name in paths]
    closed = set()
    while wanted:
        path = wanted.pop()
        if path not in closed:
            closed.add(path)
            wanted += needs[path]
    return sorted(closed)


def module_name(path):
    """The name modprobe knows a module file by."""
    return Path(path).name.partition(".")[0].replace("-", "_")


def add_modules(root, kernel):
    """Copy the modules a node may want, uncompressed, with their index."""
    tree = kernel.modules
    target = root / "lib/modules" / kernel.release
    target.mkdir(parents=True)
    for path in module_closure(tree):
        data = (tree / path).read_bytes()
        if path.endswith(".xz"):
            path = path[:-3]
            data = lzma.decompress(data)
        (target / path).parent.mkdir(parents=True, exist_ok=True)
        (target / path).write_bytes(data)
    for name in ("modules.builtin", "modules.builtin.modinfo",
                 "modules.order"):
        shutil.copy(tree / name, target / name)
    run("depmod", "-b", root, kernel.release)


def program_path(name):
    """Where the host has a program."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if not path:
        raise LabError(f"{name} is not installed: run scripts/deps")
    return path


def copy_in(root, path):
    """Put a host file at the same path under root, symlinks resolved."""
    target = root / str(path).lstrip("/")
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)


def add_programs(root):
    """Tools and the plug-ins they load at run time."""
    needed = set()
    for path in [program_path(name) for name in PROGRAMS] + PLUGINS:
        copy_in(root, path)
        needed.update(libraries(path))
    for path in sorted(needed) + FILES:
        copy_in(root, path)


def add_busybox(root):
    """Busybox, with a link for each applet not there as a real program."""
    shutil.copy(BUSYBOX, root / "bin/busybox")
    # Not busybox's shell, which prefers its own applets to real programs.
    (root / "bin/sh").symlink_to("dash")
    for applet in run(BUSYBOX, "--list-full").split():
        target = root / applet
        if not any((root / place / target.name).exists()
                   for place in ("bin", "sbin", "usr/bin", "usr/sbin")):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.symlink_to("/bin/busybox")


def add_etc(root):
    """The few files programs expect."""
    (root / "etc/passwd").write_text(
        "root:x:0:0:root:/root:/bin/sh\n"
        "lab:x:1000:1000:lab:/tmp:/bin/sh\n"
        "nobody:x:65534:65534:nobody:/:/bin/false\n")
    (root / "etc/group").write_text(
        "root:x:0:\nlab:x:1000:\nnogroup:x:65534:\n")
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n10.0.2.2 host\n")
    (root / "etc/nsswitch.conf").write_text(
        "passwd: files\ngroup: files\nhosts: files\n")
    (root / "etc/bash.bashrc").write_text("")


def fill(root, kernel):
    """Lay the whole tree of a node out under root."""
    for name in ("usr/bin", "usr/sbin", "usr/lib", "usr/lib64", "usr/local/bin",
                 "etc", "root", "proc", "sys", "dev", "run", "tmp", "var"):
        (root / name).mkdir(parents=True)
    # As on Debian, so that a library has one place under either name.
    for name in ("bin", "sbin", "lib", "lib64"):
        (root / name).symlink_to(f"usr/{name}")
    (root / "tmp").chmod(0o1777)
    (root / "var/run").symlink_to("/run")
    shutil.copy(HERE / "init", root / "init")
    build_tool(HERE / "agent.c", root / "sbin/lab-agent", "-static")
    add_programs(root)
    add_busybox(root)
    add_etc(root)
    add_modules(root, kernel)


def write_archive(root, target):
    """Pack root as a newc archive.

    It stays uncompressed: the host reads it from its page cache, and the node
    would inflate it with an emulated processor.
    """
    names = ["."]
    for place, folders, files in os.walk(root):
        inside = os.path.relpath(place, root)
        names += [os.path.normpath(f"{inside}/{name}")
                  for name in sorted(folders + files)]
    partial = target.with_suffix(".tmp")
    with open(partial, "wb") as out:
        run("cpio", "--quiet", "-o", "-H", "newc", "-R", "0:0", "-D", root,
            input="\n".join(names), stdout=out)
        out.write(device_nodes())
    os.rename(partial, target)


def device_nodes():
    """A second archive with /dev/console, which only root could mknod."""
    def entry(name, mode, major=0, minor=0):
        fields = [0, mode, 0, 0, 1, 0, 0, 0, 0, major, minor, len(name) + 1, 0]
        text = "070701" + "".join(f"{value:08x}" for value in fields)
        data = text.encode() + name.encode() + b"\0"
        return data + b"\0" * (-len(data) % 4)
    return (entry("dev/console", stat.S_IFCHR | 0o600, 5, 1)
            + entry("dev/null", stat.S_IFCHR | 0o666, 1, 3)
            + entry("TRAILER!!!", 0))


def fingerprint(kernel):
    """A hash over all that goes into the archive."""
    digest = hashlib.sha256()
    for path in (HERE / "init", HERE / "agent.c", HERE / "image.py"):
        digest.update(path.read_bytes())
    sources = [BUSYBOX, kernel.image] + PLUGINS
    sources += [program_path(name) for name in PROGRAMS]
    for path in sources:
        try:
            info = os.stat(path)
        except FileNotFoundError:
            raise LabError(f"{path} is missing: run scripts/deps") from None
        digest.update(f"{path} {info.st_size} {info.st_mtime_ns}".encode())
    return digest.hexdigest()[:12]


def initramfs(kernel):
    """The cached archive for a kernel, made now if an input has changed."""
    stem = f"initramfs-{kernel.name}-"
    target = cache_dir() / f"{stem}{fingerprint(kernel)}.cpio"
    if target.exists():
        os.utime(target)    # Still in use, see forget_old().
        return target
    with locked(cache_dir() / f"initramfs-{kernel.name}.lock"):
        if not target.exists():
            with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
                root = Path(work) / "root"
                fill(root, kernel)
                write_archive(root, target)
            forget_old(stem)
    return target


def forget_old(stem):
    """Delete archives no lab was booted from for a day."""
    for path in cache_dir().glob(stem + "*.cpio"):
        if path.stat().st_mtime < time.time() - 86400:
            path.unlink(missing_ok=True)
