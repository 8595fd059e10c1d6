// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "pgkp/Target/Manifest.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "pgkp-c/program.h"
#include "pgkp/Analysis/EntryLimits.h"
#include "pgkp/Analysis/KernelContent.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "schema/manifest_generated.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::pgkp;
namespace schema = ::pgkp::schema;

/// Of the manifest's layout; readers refuse another one.
static constexpr uint32_t kManifestFormat = 1;

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

static uint16_t addNodes(ExprAttr expr, schema::ExprT &out) {
  auto add = [&](schema::ExprOp op, uint16_t lhs, uint16_t rhs,
                 int64_t value) -> uint16_t {
    out.nodes.push_back(schema::ExprNode(op, lhs, rhs, value));
    return out.nodes.size() - 1;
  };
  if (std::optional<int64_t> constant = expr.getConstantValue())
    return add(schema::ExprOp::constant, 0, 0, *constant);
  if (std::optional<unsigned> symbol = expr.getSymbolIndex())
    return add(schema::ExprOp::symbol, 0, 0, *symbol);
  schema::ExprOp op = schema::ExprOp::sum;
  switch (expr.getKind()) {
  case ExprKind::Sum:
    op = schema::ExprOp::sum;
    break;
  case ExprKind::Product:
    op = schema::ExprOp::product;
    break;
  case ExprKind::FloorDiv:
    op = schema::ExprOp::floordiv;
    break;
  case ExprKind::CeilDiv:
    op = schema::ExprOp::ceildiv;
    break;
  case ExprKind::Mod:
    op = schema::ExprOp::mod;
    break;
  case ExprKind::Min:
    op = schema::ExprOp::min;
    break;
  case ExprKind::Max:
    op = schema::ExprOp::max;
    break;
  case ExprKind::Symbol:
  case ExprKind::Constant:
    llvm_unreachable("handled above");
  }
  uint16_t result = addNodes(expr.getOperands().front(), out);
  for (ExprAttr operand : expr.getOperands().drop_front()) {
    uint16_t rhs = addNodes(operand, out);
    result = add(op, result, rhs, 0);
  }
  return result;
}

schema::ExprT mlir::pgkp::exportExpr(ExprAttr expr) {
  schema::ExprT out;
  addNodes(expr, out);
  return out;
}

static std::vector<std::unique_ptr<schema::ExprT>>
exportShape(ArrayRef<ExprAttr> shape) {
  std::vector<std::unique_ptr<schema::ExprT>> out;
  for (ExprAttr extent : shape)
    out.push_back(std::make_unique<schema::ExprT>(exportExpr(extent)));
  return out;
}

schema::ConfigT mlir::pgkp::exportConfig(ConfigAttr config) {
  schema::ConfigT out;
  // Dictionaries are sorted by name already.
  for (NamedAttribute named : config.getValues()) {
    auto item = std::make_unique<schema::ConfigItemT>();
    item->name = named.getName().str();
    if (auto integer = dyn_cast<IntegerAttr>(named.getValue())) {
      item->kind = schema::ConfigValueKind::integer;
      item->integer = integer.getType().isInteger(1)
                          ? int64_t(integer.getValue().getZExtValue())
                          : integer.getValue().getSExtValue();
    } else {
      item->kind = schema::ConfigValueKind::text;
      if (auto text = dyn_cast<StringAttr>(named.getValue())) {
        item->text = text.str();
      } else {
        llvm::raw_string_ostream stream(item->text);
        stream << named.getValue();
      }
    }
    out.items.push_back(std::move(item));
  }
  return out;
}

static schema::Fact exportFact(FactAttr fact) {
  switch (fact.getKind()) {
  case FactKind::Equal:
    return schema::Fact(schema::FactKind::eq, fact.getDim(), fact.getValue(),
                        0);
  case FactKind::Divisible:
    return schema::Fact(schema::FactKind::divisible, fact.getDim(),
                        fact.getValue(), 0);
  case FactKind::Range:
    return schema::Fact(schema::FactKind::range, fact.getDim(), fact.getLo(),
                        fact.getHi());
  }
  llvm_unreachable("unknown fact kind");
}

static std::optional<schema::ElementType> exportElementType(Type type) {
  if (type.isF32())
    return schema::ElementType::f32;
  if (type.isF16())
    return schema::ElementType::f16;
  if (type.isBF16())
    return schema::ElementType::bf16;
  if (type.isF64())
    return schema::ElementType::f64;
  if (type.isIndex())
    return schema::ElementType::index;
  if (auto integer = dyn_cast<IntegerType>(type))
    switch (integer.getWidth()) {
    case 1:
      return schema::ElementType::i1;
    case 8:
      return schema::ElementType::i8;
    case 16:
      return schema::ElementType::i16;
    case 32:
      return schema::ElementType::i32;
    case 64:
      return schema::ElementType::i64;
    default:
      break;
    }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

static LogicalResult exportKernel(KernelOp kernel, schema::KernelT &out) {
  out.name = kernel.getSymName().str();
  KernelContent content = getKernelContent(kernel);
  out.bytecode = std::move(content.bytecode);
  out.hash = std::make_unique<schema::Digest>(
      flatbuffers::span<const uint8_t, 32>(content.hash.data(), 32));
  for (unsigned i = 0; i < kernel.getNumDims(); ++i)
    out.dims.push_back(kernel.getDimName(i).str());
  for (auto [i, type] : llvm::enumerate(kernel.getArgumentTypes())) {
    std::optional<schema::ElementType> element =
        exportElementType(getElementTypeOrSelf(type));
    if (!element)
      return kernel.emitError("argument ")
             << i << " of kernel '" << kernel.getSymName() << "' has type "
             << type << "; expected elements of type f32, f16, bf16, f64, i1, "
             << "i8, i16, i32, i64 or index";
    auto argument = std::make_unique<schema::KernelArgT>();
    argument->element = *element;
    argument->shape = exportShape(kernel.getArgumentExtents(i));
    argument->output = i >= kernel.getNumInputs();
    out.args.push_back(std::move(argument));
  }
  if (ArrayAttr classes = kernel.getClassesAttr())
    for (auto attr : classes.getAsRange<ClassAttr>()) {
      auto klass = std::make_unique<schema::ClassT>();
      for (FactAttr fact : attr.getFacts())
        klass->facts.push_back(exportFact(fact));
      klass->probability = attr.getProbability();
      klass->provenance = schema::Provenance(attr.getProvenance());
      out.classes.push_back(std::move(klass));
    }
  if (ArrayAttr configs = kernel.getConfigSpaceAttr())
    for (auto config : configs.getAsRange<ConfigAttr>())
      out.configs.push_back(
          std::make_unique<schema::ConfigT>(exportConfig(config)));
  if (CostAttr cost = kernel.getCostAttr()) {
    out.flops = std::make_unique<schema::ExprT>(exportExpr(cost.getFlops()));
    out.bytes = std::make_unique<schema::ExprT>(exportExpr(cost.getBytes()));
  }
  if (std::optional<StringRef> family = kernel.getFamily())
    out.family = family->str();
  return success();
}

//===----------------------------------------------------------------------===//
// Entries
//===----------------------------------------------------------------------===//

/// Bounds of an integer argument from `pgkp.range`.
static std::optional<std::pair<int64_t, int64_t>> getRange(Attribute attr) {
  if (auto dense = dyn_cast_or_null<DenseI64ArrayAttr>(attr))
    if (dense.size() == 2)
      return std::make_pair(dense[0], dense[1]);
  if (auto array = dyn_cast_or_null<ArrayAttr>(attr))
    if (array.size() == 2)
      if (auto low = dyn_cast<IntegerAttr>(array[0]))
        if (auto high = dyn_cast<IntegerAttr>(array[1]))
          return std::make_pair(low.getInt(), high.getInt());
  return std::nullopt;
}

/// That a call of the entry reaches the operation: half per branch, as in
/// pgkp-insert-prepare.
static double getReachProbability(Operation *op, Operation *function) {
  double probability = 1.0;
  for (Operation *parent = op->getParentOp(); parent && parent != function;
       parent = parent->getParentOp())
    if (isa<scf::IfOp, scf::IndexSwitchOp>(parent))
      probability *= 0.5;
  return probability;
}

static FailureOr<schema::ElementType>
getTensorElement(FunctionOpInterface entry, StringRef what, unsigned index,
                 Type type) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    if (auto element = exportElementType(tensor.getElementType()))
      return *element;
  return entry.emitError("entry '")
         << entry.getName() << "': " << what << " " << index << " has type "
         << type
         << "; expected a ranked tensor of f32, f16, bf16, f64, i1, i8, "
         << "i16, i32, i64 or index";
}

/// The expression as people read it: "kv + seq".
static std::string printWithNames(ExprAttr expr, ArrayRef<std::string> names) {
  std::string text, result;
  llvm::raw_string_ostream os(text);
  expr.printBody(os);
  for (size_t i = 0; i < text.size();) {
    size_t end = i + 1;
    while (end < text.size() && llvm::isDigit(text[end]))
      ++end;
    unsigned symbol;
    if (text[i] == 's' && end > i + 1 &&
        !StringRef(text).slice(i + 1, end).getAsInteger(10, symbol) &&
        symbol < names.size()) {
      result += names[symbol];
      i = end;
    } else {
      result += text[i++];
    }
  }
  return result;
}

static LogicalResult exportEntry(FunctionOpInterface function,
                                 const llvm::StringMap<uint32_t> &kernelNumbers,
                                 schema::EntryT &out) {
  RootAnalysis roots(function);
  out.name = function.getName().str();
  out.symbol = (PGKP_ENTRY_PREFIX + Twine(out.name)).str();
  for (unsigned i = 0; i < roots.getNumEntryRoots(); ++i)
    out.roots.push_back(roots.getRoots()[i].name);

  for (auto [i, value] : llvm::enumerate(function.getArguments())) {
    FailureOr<schema::ElementType> element =
        getTensorElement(function, "argument", i, value.getType());
    if (failed(element))
      return failure();
    auto argument = std::make_unique<schema::EntryArgT>();
    argument->name = "arg" + std::to_string(i);
    argument->element = *element;
    argument->shape = exportShape(roots.getShape(value));
    argument->persistent =
        bool(function.getArgAttr(i, PGKPDialect::kPersistentAttr));
    if (auto range =
            getRange(function.getArgAttr(i, PGKPDialect::kRangeAttr))) {
      argument->bounded = true;
      argument->low = range->first;
      argument->high = range->second;
    }
    out.args.push_back(std::move(argument));
  }

  SmallVector<Operation *> returns;
  for (Block &block : function.getFunctionBody())
    if (block.mightHaveTerminator() &&
        block.getTerminator()->hasTrait<OpTrait::ReturnLike>())
      returns.push_back(block.getTerminator());
  if (returns.empty())
    return function.emitError("entry '")
           << function.getName() << "' never returns; expected a return";
  for (auto [i, type] : llvm::enumerate(function.getResultTypes())) {
    FailureOr<schema::ElementType> element =
        getTensorElement(function, "result", i, type);
    if (failed(element))
      return failure();
    auto result = std::make_unique<schema::EntryResultT>();
    result->element = *element;
    SmallVector<ExprAttr> shape =
        roots.getShape(returns.front()->getOperand(i));
    for (auto [dim, extent] : llvm::enumerate(shape))
      if (!roots.isKnownAtEntry(extent) ||
          llvm::any_of(returns, [&, dim = dim, i = i](Operation *other) {
            return roots.getExtent(other->getOperand(i), dim) != shape[dim];
          }))
        return function.emitError("entry '")
               << function.getName() << "': dimension " << dim << " of result "
               << i << " does not follow from the arguments' shapes; expected "
               << "an expression over the entry's roots";
    result->shape = exportShape(shape);
    if (auto carries = function.getResultAttrOfType<IntegerAttr>(
            i, PGKPDialect::kCarriesAttr))
      result->carries = carries.getInt();
    out.results.push_back(std::move(result));
  }

  function->walk([&](DispatchOp dispatch) {
    auto it = kernelNumbers.find(dispatch.getKernel());
    if (it == kernelNumbers.end())
      return;
    auto site = std::make_unique<schema::SiteT>();
    site->kernel = it->second;
    SmallVector<ExprAttr> extents;
    for (Value extent : dispatch.getExtents())
      extents.push_back(roots.getIndex(extent));
    if (llvm::all_of(extents, [&](ExprAttr extent) {
          return roots.isKnownAtEntry(extent);
        }))
      site->extents = exportShape(extents);
    site->probability = getReachProbability(dispatch, function);
    out.sites.push_back(std::move(site));
  });

  for (const EntryLimit &limit : computeEntryLimits(function, roots)) {
    auto entry = std::make_unique<schema::LimitT>();
    entry->value = std::make_unique<schema::ExprT>(exportExpr(limit.value));
    entry->bound = std::make_unique<schema::ExprT>(exportExpr(limit.bound));
    entry->text = printWithNames(limit.value, out.roots);
    out.limits.push_back(std::move(entry));
  }
  return success();
}

LogicalResult mlir::pgkp::exportManifest(ModuleOp module,
                                         schema::BundleT &bundle) {
  bundle.format_version = kManifestFormat;
  llvm::StringMap<uint32_t> kernelNumbers;
  for (KernelOp kernel : module.getOps<KernelOp>()) {
    kernelNumbers[kernel.getSymName()] = bundle.kernels.size();
    auto out = std::make_unique<schema::KernelT>();
    if (failed(exportKernel(kernel, *out)))
      return failure();
    bundle.kernels.push_back(std::move(out));
  }
  for (auto function : module.getOps<FunctionOpInterface>()) {
    if (!isEntry(function))
      continue;
    auto out = std::make_unique<schema::EntryT>();
    if (failed(exportEntry(function, kernelNumbers, *out)))
      return failure();
    bundle.entries.push_back(std::move(out));
  }
  return success();
}
