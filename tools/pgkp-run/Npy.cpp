// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "Npy.h"

#include <fstream>

namespace pgkp::rt {

namespace {

const char *dtypeOf(schema::ElementType element) {
  using schema::ElementType;
  switch (element) {
  case ElementType::f64:
    return "<f8";
  case ElementType::f32:
    return "<f4";
  case ElementType::f16:
    return "<f2";
  case ElementType::bf16:
    return "<u2";
  case ElementType::i64:
  case ElementType::index:
    return "<i8";
  case ElementType::i32:
    return "<i4";
  case ElementType::i16:
    return "<i2";
  case ElementType::i8:
    return "|i1";
  case ElementType::i1:
    return "|b1";
  }
  return "|V1";
}

} // namespace

Status writeNpy(const std::string &path, const Tensor &tensor) {
  std::string header = fmt::format(
      "{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
      dtypeOf(tensor.element()), fmt::join(tensor.shape(), ", "),
      tensor.shape().size() == 1 ? "," : "");
  // Magic, version, length and header fill whole blocks of 64 bytes.
  constexpr size_t kPrefix = 10;
  header.append(63 - (kPrefix + header.size()) % 64, ' ');
  header.push_back('\n');
  std::ofstream file(path, std::ios::binary);
  file.write("\x93NUMPY\x01\x00", 8);
  const char length[2] = {static_cast<char>(header.size() & 0xff),
                          static_cast<char>(header.size() >> 8)};
  file.write(length, 2);
  file << header;
  file.write(reinterpret_cast<const char *>(tensor.data()),
             static_cast<std::streamsize>(tensor.bytes()));
  file.flush();
  if (!file)
    return makeError(Code::io, "cannot write '{}'", path);
  return {};
}

} // namespace pgkp::rt
