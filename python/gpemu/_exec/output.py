# SPDX-License-Identifier: MIT
"""Files that are written where others may write, too."""
from __future__ import annotations

import errno
import os
import stat


def _opener(path, flags):
    """As util_open_output (common/util.c): no other user's link is followed."""
    flags |= os.O_NOFOLLOW
    try:
        st = os.lstat(path)
    except FileNotFoundError:
        st = None
    if st and stat.S_ISLNK(st.st_mode):
        if st.st_uid not in (0, os.geteuid()):
            raise OSError(errno.EACCES, "another user's link", path)
        flags &= ~os.O_NOFOLLOW
    return os.open(path, flags, 0o666)


def output(path, mode="w", **more):
    return open(path, mode, opener=_opener, **more)
