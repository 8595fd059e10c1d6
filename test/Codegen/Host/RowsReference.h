// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

void referenceSoftmax(const float *x, float *out, long rows, long n);
void referenceRMSNorm(const float *x, const float *w, float *out, long rows,
                      long n);
void referenceLayerNorm(const float *x, const float *w, float *out, long rows,
                        long n);
