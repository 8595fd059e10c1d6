// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
// Row kernels as one writes them, compiled with -O3 -march=native -ffast-math:
// GCC vectorizes expf through libmvec. What pgkp_kernel_bench compares with.
#include "RowsReference.h"

#include <math.h>

void referenceSoftmax(const float *x, float *out, long rows, long n) {
  for (long i = 0; i < rows; ++i) {
    const float *in = x + i * n;
    float *to = out + i * n;
    float top = in[0], sum = 0;
    for (long j = 0; j < n; ++j)
      top = in[j] > top ? in[j] : top;
    for (long j = 0; j < n; ++j) {
      to[j] = expf(in[j] - top);
      sum += to[j];
    }
    float scale = 1 / sum;
    for (long j = 0; j < n; ++j)
      to[j] *= scale;
  }
}

void referenceRMSNorm(const float *x, const float *w, float *out, long rows,
                      long n) {
  for (long i = 0; i < rows; ++i) {
    const float *in = x + i * n;
    float sum = 0;
    for (long j = 0; j < n; ++j)
      sum += in[j] * in[j];
    float scale = 1 / sqrtf(sum / n + 1e-5f);
    for (long j = 0; j < n; ++j)
      out[i * n + j] = in[j] * scale * w[j];
  }
}

void referenceLayerNorm(const float *x, const float *w, float *out, long rows,
                        long n) {
  for (long i = 0; i < rows; ++i) {
    const float *in = x + i * n;
    float sum = 0, squares = 0;
    for (long j = 0; j < n; ++j)
      sum += in[j];
    float mean = sum / n;
    for (long j = 0; j < n; ++j)
      squares += (in[j] - mean) * (in[j] - mean);
    float scale = 1 / sqrtf(squares / n + 1e-5f);
    for (long j = 0; j < n; ++j)
      out[i * n + j] = (in[j] - mean) * scale * w[j];
  }
}
