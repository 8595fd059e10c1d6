// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file The lower confidence bound of every probability here.
#pragma once

namespace pgkp::rt::forecast {

/// The bound's level: the 10 % quantile.
constexpr double kLowerQuantile = 0.1;

/// The 10 % quantile of Beta(a, b). 0 where a <= 0, 1 where b <= 0. Some
/// microseconds: keep it out of loops over keys.
double betaLower(double a, double b);

} // namespace pgkp::rt::forecast
