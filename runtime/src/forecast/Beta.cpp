// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "forecast/Beta.h"

#include <algorithm>
#include <boost/math/policies/policy.hpp>
#include <boost/math/special_functions/beta.hpp>
#include <cmath>

namespace pgkp::rt::forecast {

double betaLower(double a, double b) {
  using namespace boost::math::policies;
  // Nothing may throw here, and double is precise enough.
  using Quiet = policy<domain_error<ignore_error>, overflow_error<ignore_error>,
                       evaluation_error<ignore_error>, promote_double<false>>;
  if (!(a > 0))
    return 0;
  if (!(b > 0))
    return 1;
  // Below this the quantile is under 1e-50; the inversion would only lose its
  // way.
  if (a < 0.02)
    return 0;
  const double mean = a / (a + b);
  const double result = boost::math::ibeta_inv(a, b, kLowerQuantile, Quiet());
  return std::isfinite(result) ? std::clamp(result, 0.0, 1.0)
                               : std::min(mean, 0.5 * mean);
}

} // namespace pgkp::rt::forecast
