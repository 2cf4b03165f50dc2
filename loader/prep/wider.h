/* SPDX-License-Identifier: MIT */
/*
 * WIDER: a function whose loops are also compiled for wider vectors, chosen at
 * program start. Without fused multiply-add, so that results are the same on
 * every machine. Disabled under ThreadSanitizer (gcc sets this macro): the
 * choice runs before its runtime starts, and crashes.
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
