// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "store/Usage.h"

#include "base/Log.h"
#include "base/SystemCall.h"
#include "schema/Envelope.h"

#include <cmath>
#include <cstring>
#include <ctime>
#include <fcntl.h>
#include <sys/stat.h>

namespace pgkp::rt {

namespace {
struct NoteBytes {
  uint8_t key[32];
  int64_t timeS;
  float costMs;
  uint32_t check; ///< start of the BLAKE2b-256 of what is before it
};
static_assert(sizeof(NoteBytes) == 48);

struct RowBytes {
  uint8_t key[32];
  double uses, costMs, priority;
  int64_t lastS;
};
static_assert(sizeof(RowBytes) == 64);
} // namespace

static constexpr size_t kBatch = 32;

static uint32_t checkOf(const NoteBytes &note) {
  uint8_t bytes[offsetof(NoteBytes, check)];
  std::memcpy(bytes, &note, sizeof bytes);
  const Digest digest = hashBytes(bytes);
  uint32_t check;
  std::memcpy(&check, digest.bytes.data(), sizeof check);
  return check;
}

void UsageLog::add(const Digest &key, float costMs) {
  std::unique_lock lock(mutex);
  pending.push_back({key, static_cast<int64_t>(time(nullptr)), costMs});
  const bool full = pending.size() >= kBatch;
  lock.unlock();
  if (full)
    flush();
}

void UsageLog::flush() {
  std::vector<UseNote> notes;
  {
    std::lock_guard lock(mutex);
    notes.swap(pending);
  }
  if (notes.empty())
    return;
  std::vector<NoteBytes> bytes;
  for (const UseNote &note : notes) {
    NoteBytes &out = bytes.emplace_back();
    std::memcpy(out.key, note.key.bytes.data(), sizeof out.key);
    out.timeS = note.timeS;
    out.costMs = note.costMs;
    out.check = checkOf(out);
  }
  UniqueFd fd(guarded("store", "uselog", [&] {
    return open(path.c_str(),
                O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  }));
  struct stat info;
  if (!fd ||
      guarded("store", "usestat", [&] { return fstat(fd.get(), &info); }) !=
          0 ||
      static_cast<uint64_t>(info.st_size) + bytes.size() * sizeof bytes[0] >
          maxBytes)
    return;
  // One call, so that lines of several processes do not mix.
  (void)guarded("store", "useappend", [&] {
    return write(fd.get(), bytes.data(), bytes.size() * sizeof bytes[0]);
  });
}

std::vector<UseNote> parseUseNotes(std::span<const uint8_t> bytes) {
  std::vector<UseNote> notes;
  NoteBytes note;
  while (bytes.size() >= sizeof note) {
    std::memcpy(&note, bytes.data(), sizeof note);
    if (note.check != checkOf(note) || !std::isfinite(note.costMs)) {
      bytes = bytes.subspan(1); // the rest of a write that was cut short
      continue;
    }
    UseNote &out = notes.emplace_back();
    std::memcpy(out.key.bytes.data(), note.key, sizeof note.key);
    out.timeS = note.timeS;
    out.costMs = note.costMs;
    bytes = bytes.subspan(sizeof note);
  }
  return notes;
}

void UsageTable::apply(const UseNote &note, uint64_t bytes) {
  Usage &row = rows[note.key];
  row.uses = agedUses(row.uses, row.lastS, note.timeS);
  row.lastS = std::max(row.lastS, note.timeS);
  if (note.costMs > 0)
    row.costMs = note.costMs;
  row.priority = greedy.priority(row.uses, row.costMs, bytes);
}

const Usage *UsageTable::find(const Digest &key) const {
  const auto it = rows.find(key);
  return it == rows.end() ? nullptr : &it->second;
}

double UsageTable::priority(const Digest &key, uint64_t bytes) const {
  const Usage *usage = find(key);
  return usage ? usage->priority : greedy.priority(1, 0, bytes);
}

UsageTable UsageTable::load(const std::string &path) {
  UsageTable table;
  auto payload = readSealed(FileKind::usage, path);
  if (!payload) {
    if (payload.error().code != Code::notFound)
      log(LogLevel::info, "store: {}; the order of eviction starts anew",
          payload.error().message);
    return table;
  }
  double inflation;
  if (payload->size() < sizeof inflation)
    return table;
  std::memcpy(&inflation, payload->data(), sizeof inflation);
  if (std::isfinite(inflation) && inflation > 0)
    table.greedy = GreedyDual(inflation);
  RowBytes row;
  for (size_t at = sizeof inflation; at + sizeof row <= payload->size();
       at += sizeof row) {
    std::memcpy(&row, payload->data() + at, sizeof row);
    Digest key;
    std::memcpy(key.bytes.data(), row.key, sizeof row.key);
    table.rows[key] = {row.uses, row.costMs, row.priority, row.lastS};
  }
  return table;
}

Status UsageTable::save(const std::string &path,
                        const AtomicWriteOptions &options) const {
  std::vector<uint8_t> payload(sizeof(double) + rows.size() * sizeof(RowBytes));
  const double inflation = greedy.inflation();
  std::memcpy(payload.data(), &inflation, sizeof inflation);
  size_t at = sizeof inflation;
  for (const auto &[key, usage] : rows) {
    RowBytes row{};
    std::memcpy(row.key, key.bytes.data(), sizeof row.key);
    row.uses = usage.uses;
    row.costMs = usage.costMs;
    row.priority = usage.priority;
    row.lastS = usage.lastS;
    std::memcpy(payload.data() + at, &row, sizeof row);
    at += sizeof row;
  }
  return writeFileAtomically(path, seal(FileKind::usage, payload), options);
}

} // namespace pgkp::rt
