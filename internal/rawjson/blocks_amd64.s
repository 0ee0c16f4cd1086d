#include "textflag.h"

// A byte makes an escape with the backslash before it if its entries here, by its lower and by its upper half, have a bit
// in common: 1 stands for 2x, 2 for 5x, 4 for 6x, 8 for 7x.
DATA escapeLow<>+0x00(SB)/8, $0x00040008000d0000 // 2: " b r; 4: t; 6: f
DATA escapeLow<>+0x08(SB)/8, $0x0104000200000000 // c: \; e: n; f: /
GLOBL escapeLow<>(SB), RODATA|NOPTR, $16
DATA escapeHigh<>+0x00(SB)/8, $0x0804020000010000
DATA escapeHigh<>+0x08(SB)/8, $0x0000000000000000
GLOBL escapeHigh<>(SB), RODATA|NOPTR, $16

// CLASSIFY looks at the 32 bytes in Y0. It leaves a bit for each of them that is a quote in AX, a backslash in BX, a
// control character in CX, and none that makes a short escape in DX.
#define CLASSIFY \
	VPCMPEQB  Y0, Y8, Y1;   \
	VPMOVMSKB Y1, AX;       \
	VPCMPEQB  Y0, Y9, Y1;   \
	VPMOVMSKB Y1, BX;       \
	VPMINUB   Y0, Y10, Y1;  \
	VPCMPEQB  Y0, Y1, Y1;   \
	VPMOVMSKB Y1, CX;       \
	VPSHUFB   Y0, Y11, Y1;  \
	VPSRLW    $4, Y0, Y2;   \
	VPAND     Y2, Y13, Y2;  \
	VPSHUFB   Y2, Y12, Y2;  \
	VPAND     Y1, Y2, Y1;   \
	VPCMPEQB  Y1, Y14, Y1;  \
	VPMOVMSKB Y1, DX

// func classify(text *byte, out *classes, n int)
// Requires: AVX2
TEXT ·classify(SB), NOSPLIT, $0-24
	MOVQ text+0(FP), SI
	MOVQ out+8(FP), DI
	MOVQ n+16(FP), R8
	MOVQ $0x22, AX
	VMOVQ AX, X8
	VPBROADCASTB X8, Y8
	MOVQ $0x5c, AX
	VMOVQ AX, X9
	VPBROADCASTB X9, Y9
	MOVQ $0x1f, AX
	VMOVQ AX, X10
	VPBROADCASTB X10, Y10
	MOVQ $0x0f, AX
	VMOVQ AX, X13
	VPBROADCASTB X13, Y13
	VBROADCASTI128 escapeLow<>(SB), Y11
	VBROADCASTI128 escapeHigh<>(SB), Y12
	VPXOR Y14, Y14, Y14

loop:
	VMOVDQU (SI), Y0
	CLASSIFY
	MOVL AX, 0(DI)
	MOVL BX, 8(DI)
	MOVL CX, 16(DI)
	MOVL DX, 24(DI)
	VMOVDQU 32(SI), Y0
	CLASSIFY
	MOVL AX, 4(DI)
	MOVL BX, 12(DI)
	MOVL CX, 20(DI)
	MOVL DX, 28(DI)
	ADDQ $64, SI
	ADDQ $32, DI
	DECQ R8
	JNZ  loop
	VZEROUPPER
	RET
