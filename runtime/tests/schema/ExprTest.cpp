// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "schema/TestBundle.h"

#include <gtest/gtest.h>
#include <limits>
#include <rapidcheck.h>

using namespace pgkp;
using namespace pgkp::rt;
using namespace pgkp::rt::fixtures;

namespace {
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax = std::numeric_limits<int64_t>::max();

Expected<Expr> parse(std::vector<schema::ExprNode> nodes, size_t symbols) {
  flatbuffers::FlatBufferBuilder builder;
  schema::ExprT table;
  table.nodes = std::move(nodes);
  builder.Finish(schema::Expr::Pack(builder, &table));
  return Expr::parse(
      flatbuffers::GetRoot<schema::Expr>(builder.GetBufferPointer()), symbols);
}

std::optional<int64_t> binary(schema::ExprOp op, int64_t a, int64_t b) {
  const int64_t symbols[] = {a, b};
  return parse({symbol(0), symbol(1), node(op, 0, 1)}, 2)
      .value()
      .evaluate(symbols);
}
} // namespace

TEST(Expr, Operators) {
  using Op = schema::ExprOp;
  EXPECT_EQ(binary(Op::sum, 2, 3), 5);
  EXPECT_EQ(binary(Op::product, -2, 3), -6);
  EXPECT_EQ(binary(Op::floordiv, 7, 2), 3);
  EXPECT_EQ(binary(Op::floordiv, -7, 2), -4);
  EXPECT_EQ(binary(Op::ceildiv, 7, 2), 4);
  EXPECT_EQ(binary(Op::ceildiv, -7, 2), -3);
  EXPECT_EQ(binary(Op::mod, -7, 4), 1);
  EXPECT_EQ(binary(Op::min, 2, 3), 2);
  EXPECT_EQ(binary(Op::max, 2, 3), 3);
}

TEST(Expr, OverflowAndZeroGiveNothing) {
  using Op = schema::ExprOp;
  EXPECT_FALSE(binary(Op::sum, kMax, 1));
  EXPECT_FALSE(binary(Op::product, kMax, 2));
  for (Op op : {Op::floordiv, Op::ceildiv, Op::mod}) {
    EXPECT_FALSE(binary(op, 1, 0));
    EXPECT_FALSE(binary(op, kMin, -1));
  }
  EXPECT_EQ(binary(Op::floordiv, kMin, 1), kMin);
}

TEST(Expr, DivisionsAgreeWithWideArithmetic) {
  rc::check([](int64_t a, int64_t b) {
    RC_PRE(b != 0);
    const __int128 wideA = a, wideB = b;
    __int128 floor = wideA / wideB;
    if (floor * wideB != wideA && ((wideA < 0) != (wideB < 0)))
      --floor;
    const __int128 ceil = floor + (floor * wideB != wideA);
    using Op = schema::ExprOp;
    if (floor >= kMin && floor <= kMax) {
      RC_ASSERT(binary(Op::floordiv, a, b) == static_cast<int64_t>(floor));
      RC_ASSERT(binary(Op::ceildiv, a, b) == static_cast<int64_t>(ceil));
      RC_ASSERT(binary(Op::mod, a, b) ==
                static_cast<int64_t>(wideA - floor * wideB));
    }
  });
}

TEST(Expr, RefusesBadNodes) {
  using Op = schema::ExprOp;
  EXPECT_FALSE(parse({symbol(2)}, 2));
  EXPECT_FALSE(parse({symbol(-1)}, 2));
  EXPECT_FALSE(parse({symbol(0), node(Op::sum, 0, 1)}, 1));
  EXPECT_FALSE(parse({node(static_cast<Op>(77), 0, 0)}, 1));
  EXPECT_FALSE(parse(std::vector<schema::ExprNode>(1025, constant(1)), 0));
  EXPECT_TRUE(parse(std::vector<schema::ExprNode>(1024, constant(1)), 0));
}

TEST(Expr, FewerSymbolsThanParsedForGiveNothing) {
  const int64_t symbols[] = {1};
  EXPECT_FALSE(parse({symbol(1)}, 2).value().evaluate(symbols));
  EXPECT_FALSE(Expr().evaluate(symbols));
}

TEST(Fact, Holds) {
  const int64_t extents[] = {32, 7};
  EXPECT_TRUE(holds(eq(0, 32), extents));
  EXPECT_FALSE(holds(eq(1, 32), extents));
  EXPECT_TRUE(holds(divisible(0, 16), extents));
  EXPECT_FALSE(holds(divisible(1, 16), extents));
  EXPECT_TRUE(holds(inRange(1, 7, 7), extents));
  EXPECT_FALSE(holds(inRange(1, 8, 9), extents));
  EXPECT_FALSE(holds(eq(2, 0), extents));
  EXPECT_EQ(toString(std::vector{eq(0, 1), divisible(1, 16), inRange(2, 3, 4)}),
            "d0 == 1, d1 % 16 == 0, d2 in [3, 4]");
  EXPECT_EQ(toString({}), "generic");
}
