// SPDX-License-Identifier: Apache-2.0
//
// One fatbin of nvcc as an object: ORR_SYMBOL is its first byte, ORR_FILE where it lies.
  .section .rodata
  .balign 64
  .globl ORR_SYMBOL
  .hidden ORR_SYMBOL
ORR_SYMBOL:
  .incbin ORR_FILE
  .section .note.GNU-stack,"",@progbits
