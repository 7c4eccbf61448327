"""The test's end of fault_shim.cc: sets the fault, reads what was done, cuts the power."""

import mmap
import os
import struct

NONE, NO_SPACE, WRITE_ERROR, SYNC_ERROR = 0, 1, 2, 3

INODES_MAX = 1 << 16
SYNC_HAS_FAILED = 1 << 63
SIZE = 16 + 16 * INODES_MAX  # the layout is drawn in fault_shim.cc


class FaultDisk:
    def __init__(self, shim, data_dir, control_path):
        if not os.path.exists(shim):
            raise SystemExit(f"the fault library {shim} is missing; build target orrery_fault_shim")
        self.data_dir = os.path.realpath(data_dir)
        with open(control_path, "wb") as control:
            control.truncate(SIZE)
        with open(control_path, "r+b") as control:
            self.memory = mmap.mmap(control.fileno(), SIZE)
        self.environment = {
            "LD_PRELOAD": shim,
            "ORRERY_FAULT_DIR": self.data_dir,
            "ORRERY_FAULT_CONTROL": control_path,
        }

    def set(self, mode):
        self.memory[0:4] = struct.pack("<I", mode)

    def failures(self):
        return struct.unpack_from("<I", self.memory, 4)[0]

    def cut_power(self):
        """With the server gone: takes from every file what was never synchronised, and what was
        written after a synchronisation had failed. Returns the number of bytes that were lost."""
        synced = {}
        for number, length_plus_one in struct.iter_unpack("<QQ", self.memory[16:]):
            if length_plus_one:
                synced[number] = (length_plus_one & ~SYNC_HAS_FAILED) - 1
        lost = 0
        for directory, _, names in os.walk(self.data_dir):
            for name in names:
                path = os.path.join(directory, name)
                status = os.lstat(path)
                # A file that the library never saw synchronised was written through stdio and left
                # to the kernel: after a power failure it is there, and empty.
                length = synced.get(status.st_ino, 0)
                if length < status.st_size:
                    lost += status.st_size - length
                    os.truncate(path, length)
        return lost
