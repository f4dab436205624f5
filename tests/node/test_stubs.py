"""The code for the vDSO matches its listing and its specification."""

from __future__ import annotations

import shutil
import struct
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencepost.node import stubs

ASSEMBLERS = {
    "x86_64": (["as", "--64"], ".intel_syntax noprefix\n", stubs.X86_64),
    "aarch64": (["aarch64-linux-gnu-as"], "", stubs.AARCH64),
}
machines = pytest.mark.parametrize("machine", list(stubs.STUBS))


@machines
def test_the_bytes_are_those_of_the_instructions_next_to_them(machine, tmp_path):
    command, head, listing = ASSEMBLERS[machine]
    if shutil.which(command[0]) is None or (machine == "x86_64" and not _assembles_x86()):
        pytest.skip(f"there is no assembler for {machine} here")
    lines = [line[24:].split(";")[0] for line in listing.strip("\n").splitlines()]
    source = tmp_path / "stubs.s"
    source.write_text(head + ".text\nstart:\n" + "\n".join(lines) + "\n")
    subprocess.run([*command, str(source), "-o", str(tmp_path / "stubs.o")], check=True)
    assert _text(tmp_path / "stubs.o").startswith(stubs.STUBS[machine].code)


def _assembles_x86() -> bool:
    said = subprocess.run(["as", "--version"], capture_output=True, text=True, check=True)
    return "x86_64" in said.stdout


def _text(path) -> bytes:
    """Return the section .text of an object file: the second one, as GNU as writes it."""
    content = path.read_bytes()
    (sections_at,) = struct.unpack_from("<Q", content, 0x28)
    at, size = struct.unpack_from("<QQ", content, sections_at + 64 + 0x18)
    return content[at : at + size]


@pytest.mark.parametrize(
    ("first", "written"),
    [
        ("ff4300d1", "04000014"),  # sub sp, ...: a jump over 16 bytes replaces it
        ("5f2403d5", "5f2403d503000014"),  # bti c: stays, and the jump comes after it
        ("3f2303d5", "5f2403d503000014"),  # paciasp: a landing pad that changes nothing
    ],
)
def test_a_function_that_has_a_landing_pad_keeps_one_on_aarch64(first, written):
    assert stubs.jump("aarch64", 0x1000, 0x1010, bytes.fromhex(first)).hex() == written


def test_a_jump_leads_back_as_well_as_ahead():
    assert stubs.jump("aarch64", 0x1010, 0x1000, b"\0" * 4).hex() == "fcffff17"
    assert stubs.jump("x86_64", 0x1000, 0x1010, b"\0" * 4).hex() == "e90b000000"
    assert stubs.jump("x86_64", 0x1010, 0x1000, b"\0" * 4).hex() == "e9ebffffff"


# An emulator (`pip install unicorn`) runs the code for both machines on either of them.

PLACE, STACK, DATA, RETURN, LIBRARY = 0x10000, 0x20000, 0x30000, 0x40000, 0x50000
CODE = PLACE + 16 + stubs.TABLE_SIZE
WALL_NS, MONOTONIC_NS = 1_790_000_000_123_456_789, 15_000_123_456_789
SECOND = 10**9


class Machine:
    """The stubs in an emulated machine, whose kernel shows these times."""

    def __init__(self, name, entries=()):
        unicorn = pytest.importorskip("unicorn")
        self.name = name
        self.now = {0: WALL_NS, 5: WALL_NS, 1: MONOTONIC_NS, 7: MONOTONIC_NS}
        arm = name == "aarch64"
        if arm:
            from unicorn import arm64_const as names

            self.cpu = unicorn.Uc(unicorn.UC_ARCH_ARM64, unicorn.UC_MODE_ARM)
            self.arguments = [getattr(names, f"UC_ARM64_REG_X{n}") for n in range(3)]
            self.number, self.result = names.UC_ARM64_REG_X8, names.UC_ARM64_REG_X0
            self.stack, self.link = names.UC_ARM64_REG_SP, names.UC_ARM64_REG_LR
            self.cpu.hook_add(unicorn.UC_HOOK_INTR, lambda cpu, number, data: self._call())
        else:
            from unicorn import x86_const as names

            self.cpu = unicorn.Uc(unicorn.UC_ARCH_X86, unicorn.UC_MODE_64)
            self.arguments = [getattr(names, f"UC_X86_REG_{n}") for n in ("RDI", "RSI", "RDX")]
            self.number = self.result = names.UC_X86_REG_RAX
            self.stack, self.link = names.UC_X86_REG_RSP, None
            self.cpu.hook_add(
                unicorn.UC_HOOK_INSN,
                lambda cpu, data: self._call(),
                None,
                1,
                0,
                names.UC_X86_INS_SYSCALL,
            )
        for place in (PLACE, STACK, DATA, RETURN, LIBRARY):
            self.cpu.mem_map(place, 0x1000)
        rows = dict(entries)
        table = b"".join(stubs.ENTRY.pack(*rows.get(id, (0, 0, 0, 0))) for id in range(12))
        self.cpu.mem_write(PLACE, struct.pack("<Q8x", LIBRARY) + table + stubs.STUBS[name].code)

    def _call(self):
        """Call clock_gettime, or gettimeofday for its time zone."""
        id, at, _ = (self.cpu.reg_read(register) for register in self.arguments)
        if self.cpu.reg_read(self.number) in (228, 113):
            if id not in self.now:
                self.cpu.reg_write(self.result, -22 & (1 << 64) - 1)
                return
            self.cpu.mem_write(at, struct.pack("<qq", *divmod(self.now[id], SECOND)))
        else:
            self.cpu.mem_write(at, struct.pack("<ii", -60, 1))
        self.cpu.reg_write(self.result, 0)

    def run(self, offset, *arguments, until=RETURN):
        stack = STACK + 0x800
        for register, value in zip(self.arguments, arguments, strict=False):
            self.cpu.reg_write(register, value)
        if self.link is None:
            stack -= 8
            self.cpu.mem_write(stack, struct.pack("<Q", RETURN))
        else:
            self.cpu.reg_write(self.link, RETURN)
        self.cpu.reg_write(self.stack, stack)
        self.cpu.emu_start(CODE + offset, until)
        if until == RETURN:
            assert self.cpu.reg_read(self.stack) == STACK + 0x800
        return self.cpu.reg_read(self.result) & 0xFFFFFFFF

    def two(self, at=DATA):
        return struct.unpack("<qq", self.cpu.mem_read(at, 16))

    def clock(self, id):
        """Return the time of clock_gettime, in ns."""
        assert self.run(0, id, DATA) == 0
        second, nano = self.two()
        assert 0 <= nano < SECOND
        return second * SECOND + nano

    def function(self, label):
        (name,) = (name for name in stubs.STUBS[self.name].entries if name.endswith(label))
        return stubs.STUBS[self.name].entries[name]


NS = st.integers(-3600 * SECOND, 10**7 * SECOND)


@machines
@given(offset=NS, passed=st.integers(0, 10**6 * SECOND), rate=st.integers(-(2**32), 2**42))
@settings(max_examples=50)
def test_a_clock_shows_its_offset_and_the_time_since_its_base_at_its_rate(
    machine, offset, passed, rate
):
    now = MONOTONIC_NS
    shown = Machine(machine, {1: (now - passed, offset, rate, 0)}).clock(1)
    wanted = now + offset + (passed * rate >> 32)
    assert shown == wanted if wanted >= 0 else shown >= 0


@machines
@pytest.mark.parametrize(
    ("passed", "off"), [(0, True), (999, True), (1000, False), (1999, False), (2000, True)]
)
def test_a_strobe_is_off_and_right_in_turns(machine, passed, off):
    entry = (WALL_NS - passed, 5 * SECOND, 0, 1000)
    shown = Machine(machine, {0: entry}).clock(0)
    assert shown == WALL_NS + 5 * SECOND * off


@machines
def test_clocks_without_an_entry_and_clocks_of_cpu_time_go_right(machine):
    emulated = Machine(machine, {1: (0, SECOND, 0, 0)})
    cpu = -6 & 0xFFFFFFFF
    emulated.now |= {cpu: 42, 12: 43}
    assert emulated.clock(0) == WALL_NS
    assert emulated.clock(cpu) == 42
    assert emulated.clock(12) == 43


@machines
def test_an_error_of_the_kernel_is_passed_on(machine):
    assert Machine(machine).run(0, 9, DATA) == -22 & 0xFFFFFFFF


@machines
def test_gettimeofday_and_time_show_the_wall_clock(machine):
    emulated = Machine(machine, {0: (0, SECOND, 0, 0), 5: (0, SECOND, 0, 0)})
    second, nano = divmod(WALL_NS + SECOND, SECOND)
    assert emulated.run(emulated.function("gettimeofday"), DATA, DATA + 16) == 0
    assert emulated.two() == (second, nano // 1000)
    assert struct.unpack("<ii", emulated.cpu.mem_read(DATA + 16, 8)) == (-60, 1)
    assert emulated.run(emulated.function("gettimeofday"), 0, 0) == 0
    if machine == "x86_64":
        emulated.run(emulated.function("_time"), DATA)
        assert emulated.two()[0] == second


@machines
@given(left=st.integers(0, 10**5 * SECOND), offset=NS)
@settings(max_examples=50)
def test_a_deadline_by_a_skewed_clock_is_put_right_for_the_kernel(machine, left, offset):
    if MONOTONIC_NS + offset < 0:
        return
    emulated = Machine(machine, {1: (0, offset, 0, 0)})
    deadline = MONOTONIC_NS + offset + left
    emulated.cpu.mem_write(DATA, struct.pack("<qq", *divmod(deadline, SECOND)))
    emulated.run(stubs.STUBS[machine].timedwait, 111, 222, DATA, until=LIBRARY)

    second, nano = emulated.two()
    assert second * SECOND + nano == MONOTONIC_NS + left
    handed_on = [emulated.cpu.reg_read(register) for register in emulated.arguments]
    assert handed_on == [111, 222, DATA]
    expected = STACK + 0x800 - (8 if emulated.link is None else 0)
    assert emulated.cpu.reg_read(emulated.stack) == expected


@machines
def test_a_wall_clock_deadline_is_distinguished_from_a_monotonic_one(machine):
    emulated = Machine(machine, {0: (0, SECOND, 0, 0), 1: (0, 5 * SECOND, 0, 0)})
    emulated.cpu.mem_write(DATA, struct.pack("<qq", *divmod(WALL_NS + 3 * SECOND, SECOND)))
    emulated.run(stubs.STUBS[machine].timedwait, 111, 222, DATA, until=LIBRARY)
    second, nano = emulated.two()
    assert second * SECOND + nano == WALL_NS + 2 * SECOND


@machines
def test_a_wait_without_end_stays_one(machine):
    emulated = Machine(machine, {1: (0, 5 * SECOND, 0, 0)})
    emulated.cpu.mem_write(DATA, struct.pack("<qq", 2**62, 7))
    emulated.run(stubs.STUBS[machine].timedwait, 111, 222, DATA, until=LIBRARY)
    assert emulated.two() == (2**62, 7)
