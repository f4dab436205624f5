"""The machine code that replaces the vDSO's clock functions, for both architectures.

It makes the system call that the vDSO exists to avoid, and changes the result by the entry of the
clock's id: a table of 12 entries of 32 bytes, right before the code.

    base      int64   the clock's own time when the skew began, in ns
    offset    int64   ns to add
    rate      int64   (rate - 1) * 2^32: how much faster than real time it goes
    period    uint64 0, or ns: the offset applies in every other period (strobe)

    shown = now + offset + (now - base) * rate / 2^32

An entry of zeros changes nothing. All of it is relative to the code's own place, so that the bytes
are the same in every process. It keeps to the C calling convention, and needs some 100 bytes of
stack.

`timedwait` replaces pthread_cond_timedwait (see waits.py). Its caller has read a skewed clock and
passes a deadline by that clock to the kernel, which knows only the right one. So the deadline is
corrected in place, and the C library's own function continues with it. The 8 bytes right before the
table hold its address.

Each line: the bytes in hexadecimal, then the instruction (GNU as, Intel syntax on x86-64).
tests/node/test_stubs.py assembles the right column and compares, and runs the left one.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# Entries are indexed by clock id: CLOCK_TAI, 11, is the last that shows a time of day.
ENTRIES = 12
ENTRY = struct.Struct("<qqqQ")
TABLE_SIZE = ENTRIES * ENTRY.size

X86_64 = """
                        skewed:
b8e4000000                  mov eax, 228                    ; clock_gettime(edi, rsi)
0f05                        syscall
85c0                        test eax, eax
7566                        jne 9f
83ff0b                      cmp edi, 11                     ; CPU clocks have no entry
7761                        ja 9f
89f9                        mov ecx, edi
c1e105                      shl ecx, 5                      ; 32 bytes an entry
4c8d0564feffff              lea r8, [rip + start - 384]
4901c8                      add r8, rcx
48690600ca9a3b              imul rax, [rsi], 1000000000     ; now, in ns
48034608                    add rax, [rsi + 8]
4989c1                      mov r9, rax
492b00                      sub rax, [r8]                   ; since the base
4d8b5008                    mov r10, [r8 + 8]               ; the offset
498b4818                    mov rcx, [r8 + 24]              ; the period, 0 for none
4885c9                      test rcx, rcx
7412                        je 2f
4989c3                      mov r11, rax
4899                        cqo
48f7f9                      idiv rcx
a801                        test al, 1                      ; every other period goes right
7403                        je 1f
4531d2                      xor r10d, r10d
4c89d8                  1:  mov rax, r11
49f76810                2:  imul qword ptr [r8 + 16]        ; times the rate, in 2^-32
480facd020                  shrd rax, rdx, 32
4c01d0                      add rax, r10
4c01c8                      add rax, r9
31d2                        xor edx, edx
b900ca9a3b                  mov ecx, 1000000000
48f7f1                      div rcx
488906                      mov [rsi], rax
48895608                    mov [rsi + 8], rdx
31c0                        xor eax, eax
c3                      9:  ret
                        gettimeofday:
4883ec28                    sub rsp, 40
48897c2410                  mov [rsp + 16], rdi
4889742418                  mov [rsp + 24], rsi
31ff                        xor edi, edi
4889e6                      mov rsi, rsp
e876ffffff                  call skewed
488b7c2410                  mov rdi, [rsp + 16]
4885ff                      test rdi, rdi
741a                        je 1f
488b0424                    mov rax, [rsp]
488907                      mov [rdi], rax
488b442408                  mov rax, [rsp + 8]
31d2                        xor edx, edx
b9e8030000                  mov ecx, 1000
48f7f1                      div rcx
48894708                    mov [rdi + 8], rax
488b742418              1:  mov rsi, [rsp + 24]
31c0                        xor eax, eax
4885f6                      test rsi, rsi
7409                        je 2f
31ff                        xor edi, edi
b860000000                  mov eax, 96                     ; gettimeofday, for the time zone
0f05                        syscall
4883c428                2:  add rsp, 40
c3                          ret
                        time:
4883ec18                    sub rsp, 24
48897c2410                  mov [rsp + 16], rdi
bf05000000                  mov edi, 5                      ; CLOCK_REALTIME_COARSE
4889e6                      mov rsi, rsp
e822ffffff                  call skewed
488b0424                    mov rax, [rsp]
488b7c2410                  mov rdi, [rsp + 16]
4885ff                      test rdi, rdi
7403                        je 1f
488907                      mov [rdi], rax
4883c418                1:  add rsp, 24
c3                          ret
                        timedwait:
488b02                      mov rax, [rdx]
4889c1                      mov rcx, rax
48c1e921                    shr rcx, 33                     ; a wait without end stays one
7575                        jne 3f
57                          push rdi
56                          push rsi
52                          push rdx
4883ec20                    sub rsp, 32
31ff                        xor edi, edi
48c1e81d                    shr rax, 29                     ; the monotonic clock, or 1987 and later
7505                        jne 1f
bf01000000                  mov edi, 1
4889e6                  1:  mov rsi, rsp
b8e4000000                  mov eax, 228
0f05                        syscall
488d742410                  lea rsi, [rsp + 16]
e8d8feffff                  call skewed
4869042400ca9a3b            imul rax, [rsp], 1000000000
4803442408                  add rax, [rsp + 8]
48694c241000ca9a3b          imul rcx, [rsp + 16], 1000000000
48034c2418                  add rcx, [rsp + 24]
4829c1                      sub rcx, rax                    ; shown less real
488b742420                  mov rsi, [rsp + 32]             ; the deadline
48690600ca9a3b              imul rax, [rsi], 1000000000
48034608                    add rax, [rsi + 8]
31d2                        xor edx, edx
4829c8                      sub rax, rcx
480f48c2                    cmovs rax, rdx
b900ca9a3b                  mov ecx, 1000000000
48f7f1                      div rcx
488906                      mov [rsi], rax
48895608                    mov [rsi + 8], rdx
4883c420                    add rsp, 32
5a                          pop rdx
5e                          pop rsi
5f                          pop rdi
ff25f5fcffff            3:  jmp qword ptr [rip + start - 400]
"""

AARCH64 = """
                        skewed:
e903002a                    mov w9, w0
280e80d2                    mov x8, #113                    ; clock_gettime(w0, x1)
010000d4                    svc #0
40030035                    cbnz w0, 9f
3f2d0071                    cmp w9, #11                     ; CPU clocks have no entry
08030054                    b.hi 9f
4af3ff10                    adr x10, start - 384
29e97bd3                    lsl x9, x9, #5                  ; 32 bytes an entry
4a01098b                    add x10, x10, x9
220c40a9                    ldp x2, x3, [x1]
044099d2                    mov x4, #0xca00
4473a7f2                    movk x4, #0x3b9a, lsl #16
420c049b                    madd x2, x2, x4, x3             ; now, in ns
451940a9                    ldp x5, x6, [x10]               ; base, offset
472d41a9                    ldp x7, x11, [x10, #16]         ; rate, period
450005cb                    sub x5, x2, x5
8b0000b4                    cbz x11, 1f
ac0ccb9a                    sdiv x12, x5, x11
4c000036                    tbz w12, #0, 1f                 ; every other period goes right
060080d2                    mov x6, #0
ac7c479b                1:  smulh x12, x5, x7
ad7c079b                    mul x13, x5, x7
8c81cd93                    extr x12, x12, x13, #32         ; times the rate, in 2^-32
42000c8b                    add x2, x2, x12
4200068b                    add x2, x2, x6
4308c49a                    udiv x3, x2, x4
6488049b                    msub x4, x3, x4, x2
231000a9                    stp x3, x4, [x1]
00008052                    mov w0, #0
c0035fd6                9:  ret
                        gettimeofday:
fd7bbda9                    stp x29, x30, [sp, #-48]!
e00702a9                    stp x0, x1, [sp, #32]
00008052                    mov w0, #0
e1430091                    add x1, sp, #16
deffff97                    bl skewed
e51b42a9                    ldp x5, x6, [sp, #32]
a50000b4                    cbz x5, 1f
e20f41a9                    ldp x2, x3, [sp, #16]
047d80d2                    mov x4, #1000
6308c49a                    udiv x3, x3, x4
a20c00a9                    stp x2, x3, [x5]
000080d2                1:  mov x0, #0
860000b4                    cbz x6, 2f
e10306aa                    mov x1, x6
281580d2                    mov x8, #169                    ; gettimeofday, for the time zone
010000d4                    svc #0
fd7bc3a8                2:  ldp x29, x30, [sp], #48
c0035fd6                    ret
                        timedwait:
430040f9                    ldr x3, [x2]
64fc61d3                    lsr x4, x3, #33                 ; a wait without end stays one
040400b5                    cbnz x4, 3f
fd7bbba9                    stp x29, x30, [sp, #-80]!
e00701a9                    stp x0, x1, [sp, #16]
250080d2                    mov x5, #1
64fc5dd3                    lsr x4, x3, #29                 ; the monotonic clock, or 1987 and later
440000b4                    cbz x4, 1f
050080d2                    mov x5, #0
e21702a9                1:  stp x2, x5, [sp, #32]
e00305aa                    mov x0, x5
e1c30091                    add x1, sp, #48
280e80d2                    mov x8, #113
010000d4                    svc #0
e01740f9                    ldr x0, [sp, #40]
e1030191                    add x1, sp, #64
c0ffff97                    bl skewed
044099d2                    mov x4, #0xca00
4473a7f2                    movk x4, #0x3b9a, lsl #16
e20f43a9                    ldp x2, x3, [sp, #48]
420c049b                    madd x2, x2, x4, x3
e51b44a9                    ldp x5, x6, [sp, #64]
a518049b                    madd x5, x5, x4, x6
a50002cb                    sub x5, x5, x2
e21340f9                    ldr x2, [sp, #32]               ; the deadline
461c40a9                    ldp x6, x7, [x2]
c61c049b                    madd x6, x6, x4, x7
c60005eb                    subs x6, x6, x5
c6c09f9a                    csel x6, x6, xzr, gt
c708c49a                    udiv x7, x6, x4
e698049b                    msub x6, x7, x4, x6
471800a9                    stp x7, x6, [x2]
e00741a9                    ldp x0, x1, [sp, #16]
fd7bc5a8                    ldp x29, x30, [sp], #80
50e9ff10                3:  adr x16, start - 400
100240f9                    ldr x16, [x16]
00021fd6                    br x16
"""


@dataclass(frozen=True)
class Stubs:
    """Code for one architecture.

    `entries`: for each of the vDSO's functions the begin of its replacement; `timedwait`: its
    begin.
    """

    code: bytes
    entries: dict[str, int]
    timedwait: int


def _assemble(listing: str, names: dict[str, str]) -> Stubs:
    code, labels = b"", {}
    for line in listing.strip("\n").splitlines():
        octets, instruction = line[:24].strip(), line[24:].strip()
        if not octets:
            labels[instruction.removesuffix(":")] = len(code)
        code += bytes.fromhex(octets)
    entries = {symbol: labels[label] for symbol, label in names.items()}
    return Stubs(code, entries, labels["timedwait"])


STUBS = {
    "x86_64": _assemble(
        X86_64,
        {
            "__vdso_clock_gettime": "skewed",
            "__vdso_gettimeofday": "gettimeofday",
            "__vdso_time": "time",
        },
    ),
    "aarch64": _assemble(
        AARCH64,
        {"__kernel_clock_gettime": "skewed", "__kernel_gettimeofday": "gettimeofday"},
    ),
}


def jump(machine: str, at: int, to: int, first: bytes) -> bytes:
    """Return the bytes to write at a function's start, `at`, so that it jumps to `to`.

    `first` is the current instruction. On aarch64 a function that is called through a pointer may
    have to begin with a landing pad (BTI), and gets one if it began with one.
    """
    if machine == "x86_64":
        return b"\xe9" + struct.pack("<i", to - (at + 5))
    pad = BTI_C if first[:4] in _LANDING_PADS else b""
    distance = to - (at + len(pad))
    return pad + struct.pack("<I", 0x14000000 | (distance >> 2 & 0x3FFFFFF))


BTI_C = bytes.fromhex("5f2403d5")
# bti c, bti jc, paciasp
_LANDING_PADS = (BTI_C, bytes.fromhex("df2403d5"), bytes.fromhex("3f2303d5"))
