/* Own transcendental functions: libm's differ in the last bit from machine to machine (and with FMA),
 * and none of them may reach a model. sqrt is exact by IEEE 754 and is libm's. */
#ifndef RPO_VMATH_H
#define RPO_VMATH_H
#include <stdint.h>

double rpo_log(double x);             /* x > 0 and normal; within 2 ulp */
double rpo_exp(double x);             /* 0 below -708, e^709 above 709; within 3 ulp */
double rpo_normal_quantile(double p); /* 0 < p < 1; relative error below 1e-15 (Wichura's AS 241) */
/* The standard normal of a uniform 32-bit word. */
double rpo_normal(uint32_t word);
#endif
