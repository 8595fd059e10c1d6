// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "dispatch/DispatchTable.h"
#include "base/Random.h"
#include "devices/host/HostDevice.h"
#include "dispatch/Support.h"

#include <gtest/gtest.h>
#include <thread>

using namespace pgkp::rt;
using namespace pgkp::rt::testing;
namespace schema = pgkp::schema;

namespace {

Expr parseExpr(std::vector<schema::ExprNode> nodes, size_t symbols) {
  schema::ExprT table;
  table.nodes = std::move(nodes);
  flatbuffers::FlatBufferBuilder builder;
  builder.Finish(schema::Expr::Pack(builder, &table));
  auto parsed = Expr::parse(
      flatbuffers::GetRoot<schema::Expr>(builder.GetBufferPointer()), symbols);
  EXPECT_TRUE(parsed);
  return *parsed;
}

class DispatchTableTest : public ::testing::Test {
protected:
  static constexpr uint32_t kRanks[] = {2, 0, 7};
  DispatchTable table{kRanks};
  DispatchTable::Reader reader{table};

  KeyId lookup(uint32_t kernel, std::vector<int64_t> extents,
               DispatchReason *reason = nullptr) {
    const Resolved found = reader.lookup(kernel, extents);
    if (reason)
      *reason = found.reason;
    return found.variant ? found.variant->key : kNoKey;
  }
  void publish(uint32_t kernel, Variant variant) {
    const Status status = table.publish(kernel, std::move(variant));
    ASSERT_TRUE(status) << status.error().message;
  }
};

TEST_F(DispatchTableTest, EmptyTablesFindNothing) {
  DispatchTable::Session session(reader);
  EXPECT_EQ(lookup(0, {1, 2}), kNoKey);
  EXPECT_EQ(lookup(1, {}), kNoKey);
}

TEST_F(DispatchTableTest, ExactThenClassThenGeneric) {
  publish(0, makeVariant(9, {}));
  publish(0, makeVariant(1, {eq(0, 4), eq(1, 8)}));
  publish(0, makeVariant(2, {in(0, 1, 16)}));
  publish(0, makeVariant(3, {eq(0, 20)}));
  DispatchTable::Session session(reader);
  DispatchReason reason;
  EXPECT_EQ(lookup(0, {4, 8}, &reason), 1u);
  EXPECT_EQ(reason, DispatchReason::exact);
  EXPECT_EQ(lookup(0, {4, 9}, &reason), 2u);
  EXPECT_EQ(reason, DispatchReason::classMatch);
  EXPECT_EQ(lookup(0, {17, 9}, &reason), 9u);
  EXPECT_EQ(reason, DispatchReason::generic);
  EXPECT_EQ(lookup(0, {20, 1}, &reason), 3u); // pins one extent of two
  EXPECT_EQ(reason, DispatchReason::exact);
  for (int i = 0; i < 3; ++i) // from the inline cache
    EXPECT_EQ(lookup(0, {4, 8}, &reason), 1u);
  EXPECT_EQ(reason, DispatchReason::exact);
  EXPECT_EQ(reader.lookupGeneric(0, std::vector<int64_t>{4, 8}).variant->key,
            9u);
}

TEST_F(DispatchTableTest, GuardsInMeasuredOrder) {
  publish(0, makeVariant(1, {in(0, 1, 100)}));
  publish(0, makeVariant(0, {in(0, 1, 200)}));
  DispatchTable::Session session(reader);
  EXPECT_EQ(lookup(0, {5, 5}), 0u) << "unmeasured: by key";
  publish(0, makeVariant(1, {in(0, 1, 100)}, 1.2));
  EXPECT_EQ(lookup(0, {5, 5}), 1u) << "measured before unmeasured";
  publish(0, makeVariant(2, {in(0, 5, 5)}, 1.5));
  EXPECT_EQ(lookup(0, {5, 5}), 2u) << "best gain first";
}

TEST_F(DispatchTableTest, WithdrawAndReplaceReachTheInlineCache) {
  publish(0, makeVariant(9, {}));
  publish(0, makeVariant(1, {eq(0, 4), eq(1, 8)}));
  DispatchTable::Session session(reader);
  EXPECT_EQ(lookup(0, {4, 8}), 1u);
  EXPECT_TRUE(table.withdraw(0, 1));
  EXPECT_EQ(lookup(0, {4, 8}), 9u);
  EXPECT_FALSE(table.withdraw(0, 1));
  EXPECT_FALSE(table.withdraw(77, 1));
  EXPECT_EQ(table.variants(0).size(), 1u);
  EXPECT_EQ(table.find(0, 1), nullptr);
  EXPECT_EQ(table.find(0, 9)->key, 9u);
}

TEST_F(DispatchTableTest, StaticAndWideKernels) {
  publish(1, makeVariant(5, {}));
  publish(2, makeVariant(6, {}));
  publish(2, makeVariant(7, {eq(0, 1), eq(1, 2), eq(2, 3), eq(3, 4), eq(4, 5),
                             eq(5, 6), eq(6, 7)}));
  DispatchTable::Session session(reader);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(lookup(1, {}), 5u);
    EXPECT_EQ(lookup(2, {1, 2, 3, 4, 5, 6, 7}), 7u);
    EXPECT_EQ(lookup(2, {1, 2, 3, 4, 5, 6, 8}), 6u);
  }
}

TEST_F(DispatchTableTest, WorkspaceIsEvaluated) {
  using schema::ExprNode;
  using schema::ExprOp;
  const Expr bytes = parseExpr({ExprNode(ExprOp::symbol, 0, 0, 1),
                                ExprNode(ExprOp::constant, 0, 0, 64),
                                ExprNode(ExprOp::product, 0, 1, 0)},
                               2);
  const Expr inverse = parseExpr({ExprNode(ExprOp::constant, 0, 0, 64),
                                  ExprNode(ExprOp::symbol, 0, 0, 1),
                                  ExprNode(ExprOp::floordiv, 0, 1, 0)},
                                 2);
  Variant generic = makeVariant(9, {});
  generic.workspace = bytes;
  publish(0, std::move(generic));
  Variant exact = makeVariant(1, {eq(0, 4), eq(1, 8)});
  exact.workspace = bytes;
  publish(0, std::move(exact));
  Variant guarded = makeVariant(2, {in(0, 1, 3)});
  guarded.workspace = inverse;
  publish(0, std::move(guarded));

  DispatchTable::Session session(reader);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(reader.lookup(0, std::vector<int64_t>{4, 8}).workspaceBytes,
              512u);
    EXPECT_EQ(reader.lookup(0, std::vector<int64_t>{9, 3}).workspaceBytes,
              192u);
    EXPECT_EQ(reader.lookup(0, std::vector<int64_t>{1, 2}).workspaceBytes, 32u);
  }
  // No value there: the generic variant runs.
  EXPECT_EQ(lookup(0, {1, 0}), 9u);
  Variant broken = makeVariant(3, {eq(0, 1), eq(1, 0)});
  broken.workspace = inverse;
  EXPECT_FALSE(table.publish(0, std::move(broken)));
}

TEST_F(DispatchTableTest, RefusesWhatCannotRun) {
  EXPECT_EQ(table.publish(3, makeVariant(1, {})).error().code,
            Code::invalidArgument);
  EXPECT_EQ(table.publish(0, makeVariant(1, {eq(2, 1)})).error().code,
            Code::invalidArgument);
  Variant empty;
  empty.key = 1;
  EXPECT_EQ(table.publish(0, std::move(empty)).error().code,
            Code::invalidArgument);
  EXPECT_TRUE(table.variants(0).empty());
}

TEST_F(DispatchTableTest, ManyExactKeys) {
  publish(0, makeVariant(99999, {}));
  std::vector<Variant> many;
  for (KeyId i = 0; i < 3000; ++i)
    many.push_back(makeVariant(i, {eq(0, i % 60), eq(1, 64 * (i / 60))}));
  ASSERT_TRUE(table.publish(0, std::move(many)));
  DispatchTable::Session session(reader);
  for (KeyId i = 0; i < 3000; ++i)
    ASSERT_EQ(lookup(0, {i % 60, 64 * (i / 60)}), i);
  EXPECT_EQ(lookup(0, {60, 64}), 99999u);
}

TEST_F(DispatchTableTest, UnloadsAfterTheLastSessionOnly) {
  auto unloaded = std::make_shared<std::atomic<int>>(0);
  publish(0, makeVariant(9, {}));
  publish(0, makeVariant(1, {in(0, 1, 9)}, 0, unloaded));
  DispatchTable::Reader other(table);
  reader.enter();
  const Resolved found = reader.lookup(0, std::vector<int64_t>{4, 8});
  ASSERT_EQ(found.variant->key, 1u);
  table.withdraw(0, 1);
  table.collect();
  EXPECT_EQ(*unloaded, 0);
  EXPECT_EQ(static_cast<const FakeImage &>(*found.variant->image).state,
            FakeImage::kAlive);
  other.enter(); // a later session does not see it and does not hold it
  reader.leave();
  EXPECT_GE(table.collect(), 1u);
  EXPECT_EQ(*unloaded, 1);
  EXPECT_EQ(table.pending(), 0u);
  other.leave();
}

TEST_F(DispatchTableTest, InlineCacheAcrossSessions) {
  auto unloaded = std::make_shared<std::atomic<int>>(0);
  publish(0, makeVariant(9, {}));
  publish(0, makeVariant(1, {in(0, 1, 9)}, 0, unloaded));
  {
    DispatchTable::Session session(reader);
    EXPECT_EQ(lookup(0, {4, 8}), 1u);
  }
  table.withdraw(0, 1);
  table.collect();
  EXPECT_EQ(*unloaded, 1);
  DispatchTable::Session session(reader);
  EXPECT_EQ(lookup(0, {4, 8}), 9u);
}

// Readers check that what they got is loaded and fits, while a writer replaces
// and withdraws without pause. Under ThreadSanitizer and AddressSanitizer this
// is the proof of the reclamation scheme.
TEST(DispatchTableStress, ReadersAndAWriter) {
  constexpr uint32_t kKernels = 3, kRank = 1, kExtents = 8;
  const std::vector<uint32_t> ranks(kKernels, kRank);
  DispatchTable table(ranks);
  for (uint32_t kernel = 0; kernel < kKernels; ++kernel)
    ASSERT_TRUE(table.publish(kernel, makeVariant(100, {})));

  std::atomic<bool> stop{false};
  std::atomic<uint64_t> lookups{0}, specialized{0}, wrong{0};
  auto read = [&](uint64_t seed) {
    DispatchTable::Reader reader(table);
    SeededRandom random(seed);
    while (!stop) {
      DispatchTable::Session session(reader);
      for (uint64_t i = random.below(20); i > 0; --i) {
        const int64_t extents[] = {
            static_cast<int64_t>(random.below(kExtents))};
        const Resolved found = reader.lookup(random.below(kKernels), extents);
        lookups.fetch_add(1, std::memory_order_relaxed);
        if (!found.variant || !holds(found.variant->facts, extents) ||
            static_cast<const FakeImage &>(*found.variant->image).state !=
                FakeImage::kAlive)
          ++wrong;
        else if (found.variant->key != 100)
          ++specialized;
      }
    }
  };
  std::thread a(read, 1), b(read, 2);
  auto unloaded = std::make_shared<std::atomic<int>>(0);
  int published = 0;
  SeededRandom random(3);
  // On a busy machine the readers may get the processor late.
  for (int round = 0; round < 4000 || lookups < 4000; ++round) {
    const uint32_t kernel = random.below(kKernels);
    const KeyId key = random.below(kExtents);
    if (random.below(3) == 0) {
      table.withdraw(kernel, key);
    } else {
      const auto value = static_cast<int64_t>(key);
      ++published;
      ASSERT_TRUE(table.publish(
          kernel, makeVariant(key,
                              key % 2 ? std::vector{eq(0, value)}
                                      : std::vector{in(0, value, value)},
                              0, unloaded)));
    }
    table.collect();
    if (round % 16 == 0)
      std::this_thread::yield();
  }
  stop = true;
  a.join();
  b.join();
  table.collect();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(lookups, 1000u);
  EXPECT_GT(specialized, 0u);
  EXPECT_EQ(table.pending(), 0u);
  int live = 0;
  for (uint32_t kernel = 0; kernel < kKernels; ++kernel)
    live += static_cast<int>(table.variants(kernel).size()) - 1;
  EXPECT_EQ(*unloaded + live, published);
}

} // namespace
