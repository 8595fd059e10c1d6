// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/Module.h"

#include <limits>

namespace pgkp::rt {

static constexpr size_t kMaxNodes = 1024;

Expected<Expr> Expr::parse(const schema::Expr *expr, size_t numSymbols) {
  Expr result;
  if (!expr || !expr->nodes())
    return result;
  const auto &nodes = *expr->nodes();
  if (nodes.size() > kMaxNodes)
    return makeError(Code::corrupt,
                     "expression has {} nodes, at most {} are allowed",
                     nodes.size(), kMaxNodes);
  result.nodes.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    const schema::ExprNode &node = *nodes.Get(static_cast<unsigned>(i));
    switch (node.op()) {
    case schema::ExprOp::constant:
      break;
    case schema::ExprOp::symbol:
      if (node.value() < 0 || static_cast<uint64_t>(node.value()) >= numSymbols)
        return makeError(Code::corrupt,
                         "expression node {} names symbol {}, there are {}", i,
                         node.value(), numSymbols);
      break;
    case schema::ExprOp::sum:
    case schema::ExprOp::product:
    case schema::ExprOp::floordiv:
    case schema::ExprOp::ceildiv:
    case schema::ExprOp::mod:
    case schema::ExprOp::min:
    case schema::ExprOp::max:
      if (node.lhs() >= i || node.rhs() >= i)
        return makeError(Code::corrupt,
                         "expression node {} has an operand that does not come "
                         "before it",
                         i);
      break;
    default:
      return makeError(Code::corrupt,
                       "expression node {} has unknown operator {}", i,
                       static_cast<int>(node.op()));
    }
    result.nodes.push_back(node);
  }
  return result;
}

// Rounds towards minus infinity; the divisor is neither 0 nor makes it
// overflow.
static int64_t floorDivide(int64_t a, int64_t b) {
  const int64_t quotient = a / b;
  return a % b != 0 && ((a < 0) != (b < 0)) ? quotient - 1 : quotient;
}

static std::optional<int64_t> apply(schema::ExprOp op, int64_t a, int64_t b) {
  int64_t result;
  switch (op) {
  case schema::ExprOp::sum:
    if (__builtin_add_overflow(a, b, &result))
      return std::nullopt;
    return result;
  case schema::ExprOp::product:
    if (__builtin_mul_overflow(a, b, &result))
      return std::nullopt;
    return result;
  case schema::ExprOp::floordiv:
  case schema::ExprOp::ceildiv:
  case schema::ExprOp::mod: {
    if (b == 0 || (a == std::numeric_limits<int64_t>::min() && b == -1))
      return std::nullopt;
    const int64_t floor = floorDivide(a, b);
    if (op == schema::ExprOp::floordiv)
      return floor;
    if (op == schema::ExprOp::mod)
      return a - floor * b; // has the divisor's sign, as in affine maps
    return a % b != 0 ? floor + 1 : floor;
  }
  case schema::ExprOp::min:
    return std::min(a, b);
  case schema::ExprOp::max:
    return std::max(a, b);
  default:
    return std::nullopt;
  }
}

std::optional<int64_t> Expr::evaluate(std::span<const int64_t> symbols) const {
  if (nodes.empty())
    return std::nullopt;
  int64_t values[kMaxNodes];
  for (size_t i = 0; i < nodes.size(); ++i) {
    const schema::ExprNode &node = nodes[i];
    if (node.op() == schema::ExprOp::constant) {
      values[i] = node.value();
    } else if (node.op() == schema::ExprOp::symbol) {
      const auto index = static_cast<size_t>(node.value());
      if (index >= symbols.size())
        return std::nullopt;
      values[i] = symbols[index];
    } else {
      const std::optional<int64_t> value =
          apply(node.op(), values[node.lhs()], values[node.rhs()]);
      if (!value)
        return std::nullopt;
      values[i] = *value;
    }
  }
  return values[nodes.size() - 1];
}

bool holds(const schema::Fact &fact, std::span<const int64_t> extents) {
  if (fact.dim() >= extents.size())
    return false;
  const int64_t extent = extents[fact.dim()];
  switch (fact.kind()) {
  case schema::FactKind::eq:
    return extent == fact.a();
  case schema::FactKind::divisible:
    return fact.a() > 0 && extent % fact.a() == 0;
  case schema::FactKind::range:
    return fact.a() <= extent && extent <= fact.b();
  }
  return false;
}

bool holds(std::span<const schema::Fact> facts,
           std::span<const int64_t> extents) {
  for (const schema::Fact &fact : facts)
    if (!holds(fact, extents))
      return false;
  return true;
}

std::string toString(std::span<const schema::Fact> facts) {
  if (facts.empty())
    return "generic";
  std::string text;
  for (const schema::Fact &fact : facts) {
    if (!text.empty())
      text += ", ";
    switch (fact.kind()) {
    case schema::FactKind::eq:
      text += fmt::format("d{} == {}", fact.dim(), fact.a());
      break;
    case schema::FactKind::divisible:
      text += fmt::format("d{} % {} == 0", fact.dim(), fact.a());
      break;
    case schema::FactKind::range:
      text += fmt::format("d{} in [{}, {}]", fact.dim(), fact.a(), fact.b());
      break;
    }
  }
  return text;
}

} // namespace pgkp::rt
