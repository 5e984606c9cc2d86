// What is measured, in C: as a guest, and as native code. Every function does a
// fixed amount of work and returns 0 if the result is the right one.
#pragma once

int run_sha256(void);
int run_sieve(void);
int run_fib(void);
int run_matmul(void);
int run_echo(void);
