# SPDX-License-Identifier: GPL-2.0
"""The kernels nodes boot: images out of Debian packages, or the debug build."""

import lzma
import re
import shutil
import struct
import tempfile
from pathlib import Path

from common import HERE, LabError, cache_dir
from process import locked, run

METAPACKAGES = {"6.1": "linux-headers-amd64",
                "6.12": "linux-headers-6.12-amd64"}
# Built for in a root of a newer Debian.
NEWER = ("7.2", "7.3")
KERNEL_ROOT = HERE.parent / "scripts/kernel-root"


class Kernel:
    """An ELF image to boot, its modules and build tree."""

    def __init__(self, name, release, image, modules, build):
        self.name = name
        self.release = release
        self.image = Path(image)
        self.modules = Path(modules)
        self.build = Path(build)


def find(name, ensure=True):
    """The kernel called name, downloaded or built first if ensure is set."""
    if name == "debug":
        return debug_kernel(ensure)
    return debian_kernel(name, ensure)


def debug_kernel(build_it):
    """The instrumented kernel of scripts/kernel-debug."""
    script = HERE.parent / "scripts/kernel-debug"
    out = Path(run(script, "--print-dir").strip())
    if not (out / "complete").exists():
        if not build_it:
            raise LabError("the debug kernel is not built: "
                           "run scripts/kernel-debug")
        run(script, stdout=None, stderr=None)
    release = (out / "build/include/config/kernel.release").read_text().strip()
    return Kernel("debug", release, out / "bzImage", out / "lib/modules" / release,
                  out / "build")


def debian_kernel(name, ensure):
    """A Debian kernel with the headers of the same version, from the cache.

    The packages are unpacked and never installed, so the machine itself goes
    on booting what it booted before. A version once cached stays in use: a
    security update of the archive must not end a day's work.
    """
    found = cached(name)
    if not found and not ensure:
        raise LabError(f"kernel {name} is not cached: use --ensure")
    if not found:
        with locked(cache_dir() / "kernel.lock"):
            unpack = unpack_newer if name in NEWER else unpack_kernel
            found = cached(name) or unpack(name)
    release = (found / "complete").read_text().strip()
    return Kernel(name, release, found / "vmlinux",
                  found / "lib/modules" / release,
                  found / "usr/src" / f"linux-headers-{release}")


def cached(name):
    """The folder of the newest cached version of a Debian kernel, if any.

    One whose headers are gone with the root that they were in does not count.
    """
    done = sorted((path for path in cache_dir().glob(f"kernel-{name}-*/complete")
                   if any((path.parent / "usr/src").glob("*-amd64/Makefile"))),
                  key=lambda path: path.stat().st_mtime)
    return done[-1].parent if done else None


def depends(package):
    """What a package of the archive depends on, as one string."""
    try:
        text = run("apt-cache", "show", "--no-all-versions", package)
        return re.search(r"^Depends: (.*)", text, re.M).group(1)
    except (LabError, AttributeError):
        raise LabError(f"apt does not know {package}: "
                       "run apt-get update") from None


def unpack_kernel(name):
    """Download and unpack the archive's image and headers of a kernel."""
    release, version = re.search(r"linux-headers-(\S+-amd64) \(= ([^)]+)\)",
                                 depends(METAPACKAGES[name])).groups()
    headers = f"linux-headers-{release}"
    common = headers.replace("-amd64", "-common")
    kbuild = re.search(r"linux-kbuild-[^ ,]+", depends(headers)).group(0)
    place = cache_dir() / f"kernel-{name}-{version.replace(':', '_')}"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
        run("apt-get", "-q", "-o", "APT::Sandbox::User=root", "download",
            f"linux-image-{release}={version}", f"{headers}={version}",
            f"{common}={version}", kbuild, cwd=work)
        for deb in Path(work).glob("*.deb"):
            run("dpkg", "-x", deb, place)
    # The one absolute path in them.
    source = place / "usr/src"
    (source / headers / "Makefile").write_text(
        f"include {source / common}/Makefile\n")
    return finish(place, release, place / "boot" / f"vmlinuz-{release}")


def unpack_newer(name):
    """Unpack the image that belongs to the headers in the newer Debian's root."""
    headers = Path(run(KERNEL_ROOT, "ensure", name, stderr=None).strip())
    release = headers.name.removeprefix("linux-headers-")
    place = cache_dir() / f"kernel-{name}-{release}"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=cache_dir()) as work:
        run(KERNEL_ROOT, "download", name, work, stderr=None)
        for deb in Path(work).glob("*.deb"):
            run("dpkg", "-x", deb, place)
    (place / "lib").symlink_to("usr/lib")
    (place / "usr/src").mkdir()
    (place / "usr/src" / headers.name).symlink_to(headers)
    return finish(place, release, place / "lib/modules" / release / "vmlinuz")


def finish(place, release, bzimage):
    """What is made of the packages' files."""
    extract_image(bzimage, place / "vmlinux")
    run("depmod", "-b", place, release)
    (place / "complete").write_text(release + "\n")
    return place


def extract_image(bzimage, target):
    """Take the ELF kernel out of a bzImage.

    Booted through its PVH entry it saves the node the decompression, which
    takes longer than the rest of the boot under emulation.
    """
    data = bzimage.read_bytes()
    setup = (data[0x1f1] or 4) + 1
    offset, length = struct.unpack_from("<II", data, 0x248)
    payload = data[setup * 512 + offset:][:length]
    if payload[:6] == b"\xfd7zXZ\0":
        image = lzma.LZMADecompressor().decompress(payload)
    elif payload[:4] == b"\x28\xb5\x2f\xfd":
        # The last four bytes are the length, which is not part of the frame.
        image = run("zstd", "-dcq", input=payload[:-4], text=False)
    else:
        raise LabError(f"{bzimage}: unknown compression")
    if image[:4] != b"\x7fELF":
        raise LabError(f"{bzimage}: no ELF image inside")
    target.write_bytes(image)
