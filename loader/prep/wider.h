/* SPDX-License-Identifier: MIT */
/*
 * WIDER: a function whose loops are also compiled for wider vectors, chosen
 * when the program starts. Without fused multiply-add, so that results are
 * the same on every machine. Not under ThreadSanitizer (gcc says so by this
 * macro): the choice is made before its runtime is there, and crashes.
 */
#ifndef GPEMU_LOADER_PREP_WIDER_H
#define GPEMU_LOADER_PREP_WIDER_H

#if defined(__x86_64__) && defined(__has_attribute)
#if __has_attribute(target_clones) && !defined(__SANITIZE_THREAD__)
#define WIDER __attribute__((target_clones("default", "avx2")))
#endif
#endif
#ifndef WIDER
#define WIDER
#endif

#endif
