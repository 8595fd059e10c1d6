// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file One maker per policy; each is a file of its own. A new one is added
/// here, in Planner.cpp's table, and in its file.
#pragma once

#include "planner/Planner.h"

namespace pgkp::rt::planner {

std::unique_ptr<Policy> makeOff();
std::unique_ptr<Policy> makeEager();
std::unique_ptr<Policy> makeLazyFifo();
std::unique_ptr<Policy> makeLazy();
std::unique_ptr<Policy> makeProfileForward();
std::unique_ptr<Policy> makeProfileReversed();
std::unique_ptr<Policy> makeLattice();
std::unique_ptr<Policy> makeCycle();
std::unique_ptr<Policy> makeMarkov();
std::unique_ptr<Policy> makePredictive();
std::unique_ptr<Policy> makeOracle();
std::unique_ptr<Policy> makeAnnounced();
std::unique_ptr<Policy> makeReady();

} // namespace pgkp::rt::planner
