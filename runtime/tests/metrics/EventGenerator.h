// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file Arbitrary events for property tests.
#pragma once

#include "metrics/Event.h"

#include <rapidcheck.h>

namespace pgkp::rt {

/// `wild`: any number anywhere. Otherwise few keys, ids and seconds, so that
/// events meet.
inline rc::Gen<Event> genEvent(bool wild = true) {
  return rc::gen::exec([wild] {
    Event event;
    event.kind = static_cast<EventKind>(
        *rc::gen::inRange<int>(0, static_cast<int>(kNumEventKinds)));
    if (wild) {
      event.t = *rc::gen::arbitrary<TimeNs>();
      event.key = *rc::gen::arbitrary<uint32_t>();
      event.ran = *rc::gen::arbitrary<uint32_t>();
      event.stream = *rc::gen::arbitrary<uint32_t>();
      event.id = *rc::gen::arbitrary<uint64_t>();
      event.a = *rc::gen::arbitrary<int64_t>();
      event.b = *rc::gen::arbitrary<int64_t>();
      event.value = *rc::gen::arbitrary<double>();
      event.value2 = *rc::gen::arbitrary<double>();
      event.value3 = *rc::gen::arbitrary<double>();
      event.value4 = *rc::gen::arbitrary<double>();
      event.value5 = *rc::gen::arbitrary<double>();
      event.text = *rc::gen::string<std::string>();
      for (char &c :
           event.text) // printable or a control character: UTF-8 either way
        c = static_cast<char>(c & 0x7f);
    } else {
      event.t = *rc::gen::inRange<TimeNs>(0, 30) * kNsPerSecond;
      event.key = *rc::gen::inRange<uint32_t>(0, 4);
      event.ran = *rc::gen::element<uint32_t>(0, 1, ~0u, ~0u, ~0u);
      event.stream = *rc::gen::inRange<uint32_t>(0, 2);
      event.id = *rc::gen::inRange<uint64_t>(0, 5);
      event.a = *rc::gen::inRange<int64_t>(0, 4);
      event.b = *rc::gen::inRange<int64_t>(0, 2);
      event.value = *rc::gen::inRange(-1, 40) / 20.0;
      event.value2 = *rc::gen::inRange(-1, 40) / 20.0;
      event.value3 = *rc::gen::inRange(-1, 40) / 20.0;
      event.value4 = *rc::gen::inRange(-1, 40) / 20.0;
      event.value5 = *rc::gen::inRange(-1, 40) / 20.0;
    }
    return event;
  });
}

} // namespace pgkp::rt
