// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Groups tensor operations into kernels.
///
/// Works block by block in three steps: classify operations and grow convex
/// groups in program order, plan each group's interface (nothing is changed
/// yet, so analysis results stay valid), then emit kernels and dispatches.
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Linalg/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/RegionUtils.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Transforms/Passes.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_OUTLINEKERNELSPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;

namespace {

enum class OpClass {
  None,        // not ours, or metadata
  Cheap,       // cloned into each kernel that reads it
  Contraction, // multiplies and reduces; elementwise consumers may follow
  Row,         // reduces innermost dimensions
  Reduction,   // any other reduction: a kernel of its own
  Elementwise, // parallel loops only
  Movement,    // moves data: a kernel of its own
};

struct Group {
  OpClass kind;
  SmallVector<Operation *> ops; // in program order
  /// Extents that further members must iterate over: a contraction's result,
  /// else the loops of the first operation.
  SmallVector<ExprAttr> domain;
  /// Row groups: the number of leading dimensions that are not reduced.
  unsigned numRows = 0;
};

/// A group's interface, before anything is emitted.
struct Plan {
  SmallVector<Operation *> body;   // members and clones, in program order
  SmallVector<Value> tensorInputs; // in order of first use
  SmallVector<Value> scalarInputs; // captured scalars that stay arguments
  llvm::MapVector<Value, ExprAttr> indices; // captured, over kernel symbols
  SmallVector<Value> outputs;
  SmallVector<ExprAttr> symbols;                // over roots
  SmallVector<SmallVector<ExprAttr>> argShapes; // over symbols; empty: scalar
};

//===----------------------------------------------------------------------===//
// Classification
//===----------------------------------------------------------------------===//

/// Everything an operation reads, captured values included.
SmallVector<Value> getReads(Operation *op) {
  SmallVector<Value> reads(op->getOperands());
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  reads.append(captured.begin(), captured.end());
  return reads;
}

/// True if kernels may have arguments of all types that the operation reads and
/// writes, and it computes tensors.
bool hasTensorSemantics(Operation *op) {
  auto isTensor = [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !tensor.getEncoding() &&
           tensor.getElementType().isIntOrIndexOrFloat();
  };
  return op->getNumResults() != 0 &&
         llvm::all_of(op->getResultTypes(), isTensor) &&
         llvm::all_of(getReads(op), [&](Value value) {
           return isTensor(value.getType()) ||
                  value.getType().isIntOrIndexOrFloat();
         });
}

bool isTrailing(ArrayRef<utils::IteratorType> iterators) {
  const auto *firstReduction =
      llvm::find(iterators, utils::IteratorType::reduction);
  return std::all_of(firstReduction, iterators.end(), [](auto iterator) {
    return iterator == utils::IteratorType::reduction;
  });
}

OpClass classify(Operation *op) {
  if (!hasTensorSemantics(op))
    return OpClass::None;
  if (isa<linalg::FillOp, tensor::ExtractSliceOp>(op))
    return OpClass::Cheap;
  if (isa<tensor::ConcatOp, tensor::PadOp, tensor::InsertSliceOp>(op))
    return OpClass::Movement;
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return int64_t(softmax.getDimension()) == softmax.getInputOperandRank() - 1
               ? OpClass::Row
               : OpClass::Reduction;
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  if (!linalgOp)
    return OpClass::None;
  if (linalgOp.getNumReductionLoops() == 0)
    return linalgOp.getNumParallelLoops() == linalgOp.getNumLoops()
               ? OpClass::Elementwise
               : OpClass::Reduction;
  if (linalg::isaContractionOpInterface(linalgOp) ||
      linalg::isaConvolutionOpInterface(linalgOp))
    return OpClass::Contraction;
  return isTrailing(linalgOp.getIteratorTypesArray()) ? OpClass::Row
                                                      : OpClass::Reduction;
}

/// A linalg operation's loop extents; null where no operand shows one.
SmallVector<ExprAttr> getLoopExtents(Operation *op, RootAnalysis &roots) {
  if (auto softmax = dyn_cast<linalg::SoftmaxOp>(op))
    return roots.getShape(softmax.getInput());
  auto linalgOp = cast<linalg::LinalgOp>(op);
  SmallVector<ExprAttr> extents(linalgOp.getNumLoops());
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()))
      continue;
    AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
    for (auto [i, expr] : llvm::enumerate(map.getResults()))
      if (auto dim = dyn_cast<AffineDimExpr>(expr))
        if (!extents[dim.getPosition()])
          extents[dim.getPosition()] = roots.getExtent(operand.get(), i);
  }
  return extents;
}

/// True if the map's results are its first dimensions, in order.
bool isLeadingProjection(AffineMap map, unsigned minResults) {
  if (map.getNumResults() < minResults)
    return false;
  for (auto [i, expr] : llvm::enumerate(map.getResults())) {
    auto dim = dyn_cast<AffineDimExpr>(expr);
    if (!dim || dim.getPosition() != i)
      return false;
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Grouping
//===----------------------------------------------------------------------===//

class BlockOutliner {
public:
  BlockOutliner(Block &block, RootAnalysis &roots, unsigned maxOps)
      : block(block), roots(roots), maxOps(maxOps) {}

  /// Forms groups and plans their interfaces. Changes nothing.
  void plan();

  std::vector<Group> groups;
  std::vector<Plan> plans;

private:
  void addOp(Operation *op, OpClass kind);
  bool canJoin(const Group &group, unsigned groupIndex, Operation *op,
               OpClass kind, ArrayRef<ExprAttr> extents) const;
  bool staysConvex(unsigned groupIndex, Operation *op) const;
  bool isClonedInto(Operation *op, const Group &group) const;
  bool isNeededOutside(Operation *op) const;
  bool isReadOutside(Value value,
                     const llvm::DenseSet<Operation *> &members) const;
  Plan planGroup(const Group &group);

  Operation *getDef(Value value) const {
    Operation *op = value.getDefiningOp();
    return op && op->getBlock() == &block ? op : nullptr;
  }

  Block &block;
  RootAnalysis &roots;
  unsigned maxOps;
  llvm::DenseMap<Operation *, OpClass> classes;
  llvm::DenseMap<Operation *, unsigned> order, epoch, groupOf;
};

bool BlockOutliner::staysConvex(unsigned groupIndex, Operation *op) const {
  // Looks for a path from the group to op that leaves the group. Whole groups
  // are walked: a dispatch needs everything that any of its members needs.
  unsigned first = order.lookup(groups[groupIndex].ops.front());
  SmallVector<Operation *> worklist;
  llvm::DenseSet<Operation *> seen;
  auto push = [&](Operation *reader) {
    for (Value value : getReads(reader))
      if (Operation *def = getDef(value))
        if (order.lookup(def) >= first && seen.insert(def).second)
          worklist.push_back(def);
  };
  for (Value value : getReads(op))
    if (Operation *def = getDef(value)) {
      auto it = groupOf.find(def);
      if (it != groupOf.end() && it->second == groupIndex)
        continue;
      if (order.lookup(def) >= first && seen.insert(def).second)
        worklist.push_back(def);
    }
  while (!worklist.empty()) {
    Operation *current = worklist.pop_back_val();
    auto it = groupOf.find(current);
    if (it == groupOf.end()) {
      push(current);
      continue;
    }
    if (it->second == groupIndex)
      return false;
    for (Operation *member : groups[it->second].ops)
      push(member);
  }
  return true;
}

bool BlockOutliner::canJoin(const Group &group, unsigned groupIndex,
                            Operation *op, OpClass kind,
                            ArrayRef<ExprAttr> extents) const {
  if (group.ops.size() >= maxOps ||
      epoch.lookup(group.ops.front()) != epoch.lookup(op))
    return false;
  if (kind != OpClass::Elementwise && kind != OpClass::Row)
    return false;
  if (llvm::is_contained(extents, ExprAttr()))
    return false;

  ArrayRef<ExprAttr> domain = group.domain;
  unsigned minResults = domain.size();
  unsigned numRows = domain.size();
  if (kind == OpClass::Row)
    numRows = isa<linalg::SoftmaxOp>(op)
                  ? domain.size() - 1
                  : cast<linalg::LinalgOp>(op).getNumParallelLoops();
  switch (group.kind) {
  case OpClass::Contraction:
    if (kind != OpClass::Elementwise || extents != domain)
      return false;
    break;
  case OpClass::Elementwise:
    if (extents != domain)
      return false;
    if (kind == OpClass::Row) {
      // The elementwise results become the rows that are reduced.
      for (Operation *member : group.ops)
        if (!isa<linalg::LinalgOp>(member))
          return false;
    }
    break;
  case OpClass::Row:
    if (kind == OpClass::Row) {
      if (extents != domain || numRows != group.numRows)
        return false;
      minResults = group.numRows;
    } else if (extents == domain) {
      minResults = group.numRows;
    } else if (extents == domain.take_front(group.numRows)) {
      minResults = group.numRows;
    } else {
      return false;
    }
    break;
  default:
    return false;
  }

  // What op reads of the group must be at the same indices, or at the same
  // row.
  auto linalgOp = dyn_cast<linalg::LinalgOp>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    Operation *def = getDef(operand.get());
    auto it = def ? groupOf.find(def) : groupOf.end();
    if (it == groupOf.end() || it->second != groupIndex)
      continue;
    if (!linalgOp)
      continue; // softmax reads its whole input
    AffineMap map = linalgOp.getMatchingIndexingMap(&operand);
    if (!isLeadingProjection(map, minResults))
      return false;
    if (map.getNumResults() != map.getNumDims() &&
        (group.kind != OpClass::Row || map.getNumResults() != group.numRows))
      return false;
  }
  // Values captured by the body are read at arbitrary indices.
  SetVector<Value> captured;
  getUsedValuesDefinedAbove(op->getRegions(), captured);
  for (Value value : captured)
    if (Operation *def = getDef(value)) {
      auto it = groupOf.find(def);
      if (it != groupOf.end() && it->second == groupIndex)
        return false;
    }
  return staysConvex(groupIndex, op);
}

void BlockOutliner::addOp(Operation *op, OpClass kind) {
  SmallVector<ExprAttr> extents;
  if (kind == OpClass::Elementwise || kind == OpClass::Row)
    extents = getLoopExtents(op, roots);

  // Prefer the producer that comes last: its result is the freshest.
  SmallVector<unsigned> candidates;
  for (Value operand : op->getOperands())
    if (Operation *def = getDef(operand))
      if (auto it = groupOf.find(def); it != groupOf.end())
        candidates.push_back(it->second);
  llvm::sort(candidates, [&](unsigned a, unsigned b) {
    return order.lookup(groups[a].ops.back()) >
           order.lookup(groups[b].ops.back());
  });
  candidates.erase(llvm::unique(candidates), candidates.end());
  for (unsigned candidate : candidates) {
    Group &group = groups[candidate];
    if (!canJoin(group, candidate, op, kind, extents))
      continue;
    if (kind == OpClass::Row && group.kind == OpClass::Elementwise) {
      group.kind = OpClass::Row;
      group.numRows = isa<linalg::SoftmaxOp>(op)
                          ? group.domain.size() - 1
                          : cast<linalg::LinalgOp>(op).getNumParallelLoops();
    }
    group.ops.push_back(op);
    groupOf[op] = candidate;
    return;
  }

  Group group;
  group.kind = kind;
  group.ops.push_back(op);
  if (kind == OpClass::Contraction && op->getNumResults() == 1) {
    group.domain = roots.getShape(op->getResult(0));
  } else if (kind == OpClass::Elementwise || kind == OpClass::Row) {
    group.domain = extents;
    if (kind == OpClass::Row)
      group.numRows = isa<linalg::SoftmaxOp>(op)
                          ? extents.size() - 1
                          : cast<linalg::LinalgOp>(op).getNumParallelLoops();
  }
  groupOf[op] = groups.size();
  groups.push_back(std::move(group));
}

//===----------------------------------------------------------------------===//
// Planning
//===----------------------------------------------------------------------===//

/// A contraction wants dense operands, so slices are not cloned into it.
bool BlockOutliner::isClonedInto(Operation *op, const Group &group) const {
  if (isa<tensor::EmptyOp>(op) || op->hasTrait<OpTrait::ConstantLike>())
    return true;
  if (groupOf.count(op))
    return isa<linalg::FillOp>(op) || (isa<tensor::ExtractSliceOp>(op) &&
                                       group.kind != OpClass::Contraction);
  return classes.lookup(op) == OpClass::Cheap &&
         (isa<linalg::FillOp>(op) || group.kind != OpClass::Contraction);
}

/// True if a cheap operation has a reader that does not clone it.
bool BlockOutliner::isNeededOutside(Operation *op) const {
  for (Operation *user : op->getUsers()) {
    Operation *reader = block.findAncestorOpInBlock(*user);
    if (!reader)
      return true;
    if (auto it = groupOf.find(reader); it != groupOf.end()) {
      if (!isClonedInto(op, groups[it->second]))
        return true;
      continue;
    }
    // A cheap reader that became no group is cloned with its operands.
    if (reader == user && classes.lookup(reader) == OpClass::Cheap)
      continue;
    return true;
  }
  return false;
}

/// True if anything but the members and what is cloned for them reads value.
bool BlockOutliner::isReadOutside(
    Value value, const llvm::DenseSet<Operation *> &members) const {
  for (Operation *user : value.getUsers()) {
    Operation *reader = block.findAncestorOpInBlock(*user);
    if (reader && members.contains(reader))
      continue;
    if (reader && reader == user && !groupOf.count(reader) &&
        classes.lookup(reader) == OpClass::Cheap &&
        !isReadOutside(reader->getResult(0), members))
      continue;
    return true;
  }
  return false;
}

Plan BlockOutliner::planGroup(const Group &group) {
  Plan plan;
  llvm::SmallSetVector<Operation *, 16> body(group.ops.begin(),
                                             group.ops.end());
  llvm::DenseSet<Operation *> members(group.ops.begin(), group.ops.end());
  SetVector<Value> tensors, scalars;

  // Reads in program order of the members; clones are visited where they are
  // first read.
  std::function<void(Operation *)> visit = [&](Operation *op) {
    for (Value value : getReads(op)) {
      Operation *def = getDef(value);
      if (def && members.contains(def))
        continue;
      Operation *anyDef = value.getDefiningOp();
      if (anyDef && (anyDef->hasTrait<OpTrait::ConstantLike>() ||
                     (def && isClonedInto(def, group)))) {
        if (body.insert(anyDef))
          visit(anyDef);
        continue;
      }
      if (isa<TensorType>(value.getType()))
        tensors.insert(value);
      else
        scalars.insert(value);
    }
  };
  for (Operation *op : group.ops)
    visit(op);

  plan.body = body.takeVector();
  llvm::stable_sort(plan.body, [&](Operation *a, Operation *b) {
    // Constants of enclosing blocks come first, in order of first use.
    bool aHere = a->getBlock() == &block, bHere = b->getBlock() == &block;
    if (aHere != bHere)
      return !aHere;
    return aHere && order.lookup(a) < order.lookup(b);
  });
  plan.tensorInputs = tensors.takeVector();

  for (Operation *op : group.ops)
    for (Value result : op->getResults()) {
      bool escapes = isReadOutside(result, members);
      if (escapes)
        plan.outputs.push_back(result);
    }

  // Symbols: the distinct dynamic extents of all arguments.
  auto addShape = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    SmallVector<ExprAttr> shape;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim)) {
        shape.push_back(
            ExprAttr::getConstant(type.getContext(), type.getDimSize(dim)));
        continue;
      }
      ExprAttr extent = roots.getExtent(value, dim);
      auto *it = llvm::find(plan.symbols, extent);
      unsigned index = it - plan.symbols.begin();
      if (it == plan.symbols.end())
        plan.symbols.push_back(extent);
      shape.push_back(ExprAttr::getSymbol(type.getContext(), index));
    }
    plan.argShapes.push_back(std::move(shape));
  };
  for (Value value : plan.tensorInputs)
    addShape(value);
  unsigned numInputShapes = plan.argShapes.size();
  for (Value value : plan.outputs)
    addShape(value);

  // Indices that follow from the extents are computed inside.
  for (Value value : scalars) {
    if (value.getType().isIndex())
      if (ExprAttr inside =
              rewriteOverSymbols(roots.getIndex(value), plan.symbols)) {
        plan.indices.insert({value, inside});
        continue;
      }
    plan.scalarInputs.push_back(value);
  }
  plan.argShapes.insert(plan.argShapes.begin() + numInputShapes,
                        plan.scalarInputs.size(), SmallVector<ExprAttr>());
  return plan;
}

void BlockOutliner::plan() {
  unsigned nextOrder = 0, nextEpoch = 0;
  for (Operation &op : block) {
    // Groups do not reach across side effects: order among them is kept.
    if (!isMemoryEffectFree(&op) && !op.hasTrait<OpTrait::IsTerminator>())
      ++nextEpoch;
    classes[&op] = classify(&op);
    order[&op] = nextOrder++;
    epoch[&op] = nextEpoch;
  }
  for (Operation &op : block) {
    OpClass kind = classes.lookup(&op);
    if (kind != OpClass::None && kind != OpClass::Cheap &&
        isMemoryEffectFree(&op))
      addOp(&op, kind);
  }
  // Cheap operations that somebody else reads are kernels of their own. The
  // last ones first, for a chain of them.
  for (Operation &op : llvm::reverse(block))
    if (classes.lookup(&op) == OpClass::Cheap && isNeededOutside(&op))
      addOp(&op,
            isa<linalg::FillOp>(op) ? OpClass::Elementwise : OpClass::Movement);
  llvm::stable_sort(groups, [&](const Group &a, const Group &b) {
    return order.lookup(a.ops.back()) < order.lookup(b.ops.back());
  });
  for (auto [i, group] : llvm::enumerate(groups))
    for (Operation *op : group.ops)
      groupOf[op] = i;
  for (const Group &group : groups)
    plans.push_back(planGroup(group));
}

//===----------------------------------------------------------------------===//
// Emission
//===----------------------------------------------------------------------===//

/// Outlines the kernels of one module; equal kernels are shared.
class ModuleOutliner {
public:
  ModuleOutliner(ModuleOp module, unsigned maxOps)
      : module(module), symbols(module), maxOps(maxOps) {}

  void outlineFunction(FunctionOpInterface function);

private:
  void emit(FunctionOpInterface function, Block &block, BlockOutliner &blocks,
            RootAnalysis &roots);
  KernelOp getOrCreateKernel(FunctionOpInterface function, const Group &group,
                             const Plan &plan, RootAnalysis &roots);
  void buildBody(KernelOp kernel, const Group &group, const Plan &plan);
  /// The value of an expression over roots, at the entry's start where
  /// possible, else at the builder.
  Value getExtentValue(OpBuilder &builder, Location loc, ExprAttr extent,
                       FunctionOpInterface function, RootAnalysis &roots);
  void replaceDims(FunctionOpInterface function, RootAnalysis &roots);

  ModuleOp module;
  SymbolTable symbols;
  unsigned maxOps;
  llvm::StringMap<KernelOp> known;
  llvm::StringMap<unsigned> nextSuffix;
  llvm::DenseMap<ExprAttr, Value> entryValues;
  Operation *lastEntryOp = nullptr;
};

ArrayAttr getNames(OpBuilder &builder, ArrayRef<std::string> names) {
  SmallVector<StringRef> refs(names.begin(), names.end());
  return builder.getStrArrayAttr(refs);
}

/// The binding of every argument's dimensions, for `args(...)`.
ArrayAttr getBindings(OpBuilder &builder, ArrayRef<std::string> names,
                      ArrayRef<SmallVector<ExprAttr>> shapes) {
  SmallVector<Attribute> bindings;
  for (ArrayRef<ExprAttr> shape : shapes) {
    SmallVector<Attribute> binding;
    for (ExprAttr extent : shape)
      binding.push_back(
          extent.isConstant()
              ? Attribute(builder.getI64IntegerAttr(extent.getValue()))
              : builder.getStringAttr(names[*extent.getSymbolIndex()]));
    bindings.push_back(builder.getArrayAttr(binding));
  }
  return builder.getArrayAttr(bindings);
}

KernelOp createKernel(OpBuilder &builder, Location loc, FunctionType type,
                      ArrayRef<std::string> names,
                      ArrayRef<SmallVector<ExprAttr>> shapes) {
  SmallVector<StringRef> refs(names.begin(), names.end());
  auto kernel = KernelOp::create(builder, loc, "k", type, refs,
                                 getBindings(builder, names, shapes));
  if (kernel.getBody().empty()) {
    Block *body = new Block();
    kernel.getBody().push_back(body);
    body->addArguments(type.getInputs(),
                       SmallVector<Location>(type.getNumInputs(), loc));
  }
  return kernel;
}

/// A name for a symbol: the root's, or the roots' joined.
std::string getSymbolName(ExprAttr extent, const std::vector<Root> &roots) {
  switch (extent.getKind()) {
  case ExprKind::Symbol:
    return roots[*extent.getSymbolIndex()].name;
  case ExprKind::Product:
  case ExprKind::Sum: {
    std::string name;
    for (ExprAttr operand : extent.getOperands()) {
      std::string part = operand.isConstant()
                             ? std::to_string(operand.getValue())
                             : getSymbolName(operand, roots);
      if (part.empty() || part[0] == '-')
        return "";
      if (!name.empty())
        name += extent.getKind() == ExprKind::Sum ? "_plus_" : "_";
      name += part;
    }
    if (!name.empty() && llvm::isDigit(name[0]))
      name = "x" + name;
    return name;
  }
  default:
    return "";
  }
}

/// What a kernel is called, before it is made unique.
StringRef getKernelStem(const Group &group) {
  Operation *root = group.ops.front();
  switch (group.kind) {
  case OpClass::Contraction: {
    auto linalgOp = cast<linalg::LinalgOp>(root);
    if (linalg::isaConvolutionOpInterface(linalgOp))
      return "conv";
    auto dims = linalg::inferContractionDims(linalgOp);
    return succeeded(dims) && !dims->batch.empty() ? "batch_matmul" : "matmul";
  }
  case OpClass::Row:
    return "row";
  case OpClass::Reduction:
    return "reduce";
  case OpClass::Movement:
    if (isa<tensor::ConcatOp>(root))
      return "concat";
    return isa<tensor::PadOp>(root) ? "pad" : "slice";
  default:
    break;
  }
  auto generic = dyn_cast<linalg::GenericOp>(root);
  bool moves = generic && group.ops.size() == 1 &&
               llvm::hasSingleElement(generic.getBody()->getOperations());
  return moves || isa<linalg::TransposeOp>(root) ? "transpose" : "elementwise";
}

void ModuleOutliner::buildBody(KernelOp kernel, const Group &group,
                               const Plan &plan) {
  Block *body = &kernel.getBody().front();
  OpBuilder builder = OpBuilder::atBlockEnd(body);
  Location loc = kernel.getLoc();
  IRMapping mapping;
  unsigned next = 0;
  for (Value value : plan.tensorInputs)
    mapping.map(value, body->getArgument(next++));
  for (Value value : plan.scalarInputs)
    mapping.map(value, body->getArgument(next++));
  unsigned firstOut = next;

  // A symbol's value is the first argument dimension bound to it.
  llvm::DenseMap<unsigned, Value> symbolValues;
  auto getSymbol = [&](unsigned symbol) -> Value {
    Value &value = symbolValues[symbol];
    if (value)
      return value;
    ExprAttr expr = ExprAttr::getSymbol(builder.getContext(), symbol);
    for (auto [i, shape] : llvm::enumerate(plan.argShapes))
      for (auto [dim, extent] : llvm::enumerate(shape))
        if (!value && extent == expr)
          value =
              tensor::DimOp::create(builder, loc, body->getArgument(i), dim);
    return value;
  };
  for (auto &[value, expr] : plan.indices)
    mapping.map(value, materializeExpr(builder, loc, expr, getSymbol));
  for (Operation *op : plan.body)
    builder.clone(*op, mapping);

  // Results are computed in their destinations where they start from an empty
  // tensor.
  SmallVector<Value> results;
  for (auto [i, output] : llvm::enumerate(plan.outputs)) {
    Value result = mapping.lookup(output);
    results.push_back(result);
    Value current = result;
    while (auto op = current.getDefiningOp<DestinationStyleOpInterface>()) {
      OpOperand *init = op.getTiedOpOperand(cast<OpResult>(current));
      Value initValue = init->get();
      if (initValue.getDefiningOp<tensor::EmptyOp>() &&
          initValue.getType() == body->getArgument(firstOut + i).getType()) {
        init->set(body->getArgument(firstOut + i));
        break;
      }
      if (!initValue.getDefiningOp() || !initValue.hasOneUse())
        break;
      current = initValue;
    }
  }
  pgkp::ReturnOp::create(builder, loc, results);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(*body)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

KernelOp ModuleOutliner::getOrCreateKernel(FunctionOpInterface function,
                                           const Group &group, const Plan &plan,
                                           RootAnalysis &roots) {
  OpBuilder builder(function);
  SmallVector<Type> inputs, results;
  for (Value value : plan.tensorInputs)
    inputs.push_back(value.getType());
  for (Value value : plan.scalarInputs)
    inputs.push_back(value.getType());
  for (Value value : plan.outputs) {
    inputs.push_back(value.getType());
    results.push_back(value.getType());
  }
  // Equality is judged with neutral names.
  SmallVector<std::string> dimNames;
  for (unsigned i = 0; i < plan.symbols.size(); ++i)
    dimNames.push_back(("d" + Twine(i)).str());
  KernelOp kernel = createKernel(builder, group.ops.front()->getLoc(),
                                 builder.getFunctionType(inputs, results),
                                 dimNames, plan.argShapes);
  buildBody(kernel, group, plan);

  std::string text;
  llvm::raw_string_ostream stream(text);
  kernel->print(stream, OpPrintingFlags().printGenericOpForm().useLocalScope());
  KernelOp &entry = known[text];
  if (entry) {
    kernel->erase();
    return entry;
  }
  entry = kernel;

  StringRef stem = getKernelStem(group);
  unsigned &suffix = nextSuffix[stem];
  std::string name;
  do
    name = (stem + "_" + Twine(suffix++)).str();
  while (symbols.lookup(name));
  kernel.setSymName(name);
  symbols.insert(kernel);

  llvm::StringSet<> used;
  for (auto [i, symbol] : llvm::enumerate(plan.symbols)) {
    std::string symbolName = getSymbolName(symbol, roots.getRoots());
    if (!symbolName.empty() && used.insert(symbolName).second)
      dimNames[i] = symbolName;
    else
      used.insert(dimNames[i]);
  }
  kernel.setDimsAttr(getNames(builder, dimNames));
  kernel.setArgDimsAttr(getBindings(builder, dimNames, plan.argShapes));
  return kernel;
}

Value ModuleOutliner::getExtentValue(OpBuilder &builder, Location loc,
                                     ExprAttr extent,
                                     FunctionOpInterface function,
                                     RootAnalysis &roots) {
  if (!roots.isKnownAtEntry(extent))
    return materializeExpr(builder, loc, extent, [&](unsigned symbol) -> Value {
      const Root &root = roots.getRoots()[symbol];
      if (root.isEntry)
        return getExtentValue(builder, loc,
                              ExprAttr::getSymbol(builder.getContext(), symbol),
                              function, roots);
      return createRootRead(builder, loc, root);
    });
  if (Value value = entryValues.lookup(extent))
    return value;
  OpBuilder entryBuilder(builder.getContext());
  if (lastEntryOp)
    entryBuilder.setInsertionPointAfter(lastEntryOp);
  else
    entryBuilder.setInsertionPointToStart(&function.getFunctionBody().front());
  Location entryLoc = function.getLoc();
  Value value;
  if (std::optional<unsigned> symbol = extent.getSymbolIndex()) {
    const Root &root = roots.getRoots()[*symbol];
    value = createRootRead(entryBuilder, entryLoc, root);
  } else if (extent.isConstant()) {
    value = arith::ConstantIndexOp::create(entryBuilder, entryLoc,
                                           extent.getValue());
  } else {
    value = materializeExpr(
        entryBuilder, entryLoc, extent, [&](unsigned symbol) -> Value {
          Value symbolValue = getExtentValue(
              builder, loc, ExprAttr::getSymbol(builder.getContext(), symbol),
              function, roots);
          entryBuilder.setInsertionPointAfter(lastEntryOp);
          return symbolValue;
        });
  }
  lastEntryOp = value.getDefiningOp();
  entryValues[extent] = value;
  return value;
}

void ModuleOutliner::emit(FunctionOpInterface function, Block &block,
                          BlockOutliner &blocks, RootAnalysis &roots) {
  SmallVector<Operation *> erased;
  SmallVector<std::pair<Value, Value>> replaced;
  for (auto [group, plan] : llvm::zip_equal(blocks.groups, blocks.plans)) {
    Operation *last = group.ops.back();
    erased.append(group.ops.begin(), group.ops.end());
    if (plan.outputs.empty())
      continue; // dead
    KernelOp kernel = getOrCreateKernel(function, group, plan, roots);
    OpBuilder builder(last);
    Location loc = last->getLoc();
    SmallVector<Value> extents, ins, outs;
    for (ExprAttr symbol : plan.symbols)
      extents.push_back(getExtentValue(builder, loc, symbol, function, roots));
    ins.append(plan.tensorInputs);
    ins.append(plan.scalarInputs);
    for (Value output : plan.outputs) {
      auto type = cast<RankedTensorType>(output.getType());
      SmallVector<Value> sizes;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          sizes.push_back(getExtentValue(
              builder, loc, roots.getExtent(output, dim), function, roots));
      outs.push_back(tensor::EmptyOp::create(builder, loc, type, sizes));
    }
    auto dispatch =
        DispatchOp::create(builder, loc, kernel, extents, ins, outs);
    for (auto [output, result] :
         llvm::zip_equal(plan.outputs, dispatch->getResults()))
      replaced.push_back({output, result});
    remark::passed(loc, remark::RemarkOpts::name("outlined")
                            .category(kRemarkCategory)
                            .function(function.getName()))
        << remark::add("'{0}': {1} operations, {2} inputs, {3} results, {4} "
                       "dynamic extents",
                       kernel.getSymName().str(), group.ops.size(), ins.size(),
                       outs.size(), plan.symbols.size());
  }
  for (auto [from, to] : replaced)
    from.replaceAllUsesWith(to);
  for (Operation *op : erased)
    op->dropAllReferences();
  for (Operation *op : erased) {
    op->dropAllUses();
    op->erase();
  }
  sortTopologically(&block);
  for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
    if (isOpTriviallyDead(&op))
      op.erase();
}

/// Reads of extents that are known at the entry no longer keep tensors alive.
void ModuleOutliner::replaceDims(FunctionOpInterface function,
                                 RootAnalysis &roots) {
  SmallVector<tensor::DimOp> dims;
  function->walk([&](tensor::DimOp dim) { dims.push_back(dim); });
  for (tensor::DimOp dim : dims) {
    if (isa<BlockArgument>(dim.getSource()))
      continue;
    ExprAttr extent = roots.getIndex(dim.getResult());
    if (!roots.isKnownAtEntry(extent))
      continue;
    OpBuilder builder(dim);
    Value value =
        getExtentValue(builder, dim.getLoc(), extent, function, roots);
    dim.getResult().replaceAllUsesWith(value);
  }
}

void ModuleOutliner::outlineFunction(FunctionOpInterface function) {
  entryValues.clear();
  lastEntryOp = nullptr;
  {
    RootAnalysis roots(function);
    replaceDims(function, roots);
  }
  function->walk<WalkOrder::PostOrder>([&](Operation *op) {
    for (Region &region : op->getRegions())
      for (Block &block : region)
        for (Operation &inner :
             llvm::make_early_inc_range(llvm::reverse(block)))
          if (isOpTriviallyDead(&inner))
            inner.erase();
  });

  // Innermost blocks first. Bodies of tensor operations are not ours.
  SmallVector<Block *> blocks;
  function->walk<WalkOrder::PostOrder>([&](Block *block) {
    Operation *parent = block->getParentOp();
    if (parent == function.getOperation() ||
        isa<RegionBranchOpInterface>(parent))
      blocks.push_back(block);
  });
  entryValues.clear();
  lastEntryOp = nullptr;
  for (Block *block : blocks) {
    // Emission invalidates values, so each block gets a fresh analysis.
    RootAnalysis roots(function);
    BlockOutliner outliner(*block, roots, maxOps);
    outliner.plan();
    emit(function, *block, outliner, roots);
    entryValues.clear();
    lastEntryOp = nullptr;
  }
}

struct OutlineKernelsPass
    : public mlir::pgkp::impl::OutlineKernelsPassBase<OutlineKernelsPass> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    if (maxOps < 1) {
      module.emitError("option 'max-ops' is 0; expected at least 1");
      return signalPassFailure();
    }
    ModuleOutliner outliner(module, maxOps);
    for (auto function :
         llvm::make_early_inc_range(module.getOps<FunctionOpInterface>())) {
      if (!isEntry(function))
        continue;
      bool hasDispatch =
          function->walk([](DispatchOp) { return WalkResult::interrupt(); })
              .wasInterrupted();
      if (hasDispatch) {
        remark::missed(function.getLoc(),
                       remark::RemarkOpts::name("already outlined")
                           .category(kRemarkCategory)
                           .function(function.getName()));
        continue;
      }
      if (failed(simplify(function)))
        return signalPassFailure();
      outliner.outlineFunction(function);
    }
  }

  /// Tensor arithmetic becomes linalg; single-use elementwise producers are
  /// fused into their consumers, contractions excepted.
  LogicalResult simplify(FunctionOpInterface function) {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseToLinalgConversionPatterns(patterns);
    if (fuseElementwise)
      linalg::populateElementwiseOpsFusionPatterns(
          patterns, [](OpOperand *operand) {
            auto consumer = dyn_cast<linalg::LinalgOp>(operand->getOwner());
            return operand->get().hasOneUse() && consumer &&
                   !linalg::isaContractionOpInterface(consumer);
          });
    if (failed(applyPatternsGreedily(function, std::move(patterns))))
      return function->emitError("elementwise fusion did not converge");
    return success();
  }
};

} // namespace
