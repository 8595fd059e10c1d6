// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPDialect.cpp - The pgkp dialect ---------------------------------===//

#include "pgkp/Dialect/IR/PGKPDialect.h"
#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace mlir::pgkp;

#include "pgkp/Dialect/IR/PGKPDialect.cpp.inc"
#include "pgkp/Dialect/IR/PGKPInterfaces.cpp.inc"

void PGKPDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "pgkp/Dialect/IR/PGKPOps.cpp.inc"
      >();
  registerAttributes();
}

//===----------------------------------------------------------------------===//
// Entries and roots
//===----------------------------------------------------------------------===//

bool mlir::pgkp::isEntry(FunctionOpInterface function) {
  return function.isPublic() && !function.isExternal() &&
         !isa<KernelOp>(function.getOperation()) &&
         llvm::any_of(function.getArgumentTypes(), [](Type type) {
           return isa<TensorType, BaseMemRefType>(type);
         });
}

SmallVector<StringRef> mlir::pgkp::getRootNames(FunctionOpInterface entry) {
  llvm::SmallSetVector<StringRef, 4> names;
  if (auto roots = entry->getAttrOfType<ArrayAttr>(PGKPDialect::kRootsAttr)) {
    for (auto root : roots.getAsValueRange<StringAttr>())
      names.insert(root);
    return llvm::to_vector(names);
  }
  for (unsigned i = 0, e = entry.getNumArguments(); i != e; ++i)
    if (auto dims =
            entry.getArgAttrOfType<ArrayAttr>(i, PGKPDialect::kDimsAttr))
      for (auto name : dims.getAsValueRange<StringAttr>())
        if (!name.empty())
          names.insert(name);
  return llvm::to_vector(names);
}

//===----------------------------------------------------------------------===//
// Verification of discardable attributes
//===----------------------------------------------------------------------===//

/// Root names become columns of request files.
static bool isIdentifier(StringRef name) {
  return !name.empty() && (llvm::isAlpha(name[0]) || name[0] == '_') &&
         llvm::all_of(name,
                      [](char c) { return llvm::isAlnum(c) || c == '_'; });
}

LogicalResult PGKPDialect::verifyOperationAttribute(Operation *op,
                                                    NamedAttribute attribute) {
  if (attribute.getName() != kRootsAttr)
    return success();
  if (!isa<FunctionOpInterface>(op) || isa<KernelOp>(op))
    return op->emitOpError("'pgkp.roots' is allowed on functions only");
  auto roots = dyn_cast<ArrayAttr>(attribute.getValue());
  if (!roots || !llvm::all_of(roots, llvm::IsaPred<StringAttr>))
    return op->emitOpError("'pgkp.roots' must be an array of strings");
  llvm::SmallDenseSet<StringRef> seen;
  for (auto name : roots.getAsValueRange<StringAttr>()) {
    if (!isIdentifier(name))
      return op->emitOpError("'pgkp.roots' has '")
             << name << "', which is not an identifier";
    if (!seen.insert(name).second)
      return op->emitOpError("'pgkp.roots' lists '") << name << "' twice";
  }
  return success();
}

/// The emitter of one attribute's errors: names argument or result first.
static InFlightDiagnostic emitAttrError(Operation *op, StringRef what,
                                        unsigned index, StringRef name) {
  return op->emitOpError() << what << " #" << index << ": '" << name << "' ";
}

static LogicalResult verifyDims(Operation *op, unsigned index, Type type,
                                Attribute value) {
  auto error = [&]() {
    return emitAttrError(op, "argument", index, PGKPDialect::kDimsAttr);
  };
  if (isa<KernelOp>(op))
    return error() << "names roots of an entry; a kernel binds its dimensions "
                      "with 'args'";
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped || !shaped.hasRank())
    return error() << "needs a ranked tensor or memref, got " << type;
  auto dims = dyn_cast<ArrayAttr>(value);
  if (!dims || !llvm::all_of(dims, llvm::IsaPred<StringAttr>))
    return error() << "must be an array of strings";
  if (dims.size() != static_cast<size_t>(shaped.getRank()))
    return error() << "has " << dims.size() << " names; expected "
                   << shaped.getRank() << ", one per dimension of " << type;
  for (auto [dim, name] : llvm::enumerate(dims.getAsValueRange<StringAttr>())) {
    if (name.empty())
      continue;
    if (!isIdentifier(name))
      return error() << "has '" << name << "', which is not an identifier";
    if (!shaped.isDynamicDim(dim))
      return error() << "names dimension " << dim << " '" << name
                     << "', which is static; expected ''";
  }
  return success();
}

static LogicalResult verifyRange(Operation *op, unsigned index, Type type,
                                 Attribute value) {
  auto error = [&]() {
    return emitAttrError(op, "argument", index, PGKPDialect::kRangeAttr);
  };
  Type element = getElementTypeOrSelf(type);
  if (!isa<ShapedType>(type) || !element.isIntOrIndex())
    return error() << "needs a tensor or memref of integers, got " << type;
  auto bounds = dyn_cast<ArrayAttr>(value);
  if (!bounds || bounds.size() != 2 ||
      !llvm::all_of(bounds, [](Attribute bound) {
        auto integer = dyn_cast<IntegerAttr>(bound);
        return integer && integer.getType().isSignlessInteger(64);
      }))
    return error() << "must be two 64-bit integers [lower, upper]";
  int64_t lo = cast<IntegerAttr>(bounds[0]).getInt();
  int64_t hi = cast<IntegerAttr>(bounds[1]).getInt();
  if (lo > hi)
    return error() << "is [" << lo << ", " << hi
                   << "]; expected lower <= upper";
  unsigned width = element.isIndex() ? 64 : element.getIntOrFloatBitWidth();
  if (width < 64) {
    // Signless integers may be meant either way.
    int64_t min = element.isUnsignedInteger() ? 0 : llvm::minIntN(width);
    int64_t max = element.isSignedInteger() ? llvm::maxIntN(width)
                                            : llvm::maxUIntN(width);
    if (lo < min || hi > max)
      return error() << "is [" << lo << ", " << hi << "], which does not fit "
                     << element;
  }
  return success();
}

LogicalResult PGKPDialect::verifyRegionArgAttribute(Operation *op, unsigned,
                                                    unsigned argIndex,
                                                    NamedAttribute attribute) {
  // Lowering a function copies argument attributes to whatever it makes of the
  // argument; they mean nothing there.
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || op->getName().getDialectNamespace() == "llvm")
    return success();
  Type type = function.getArgumentTypes()[argIndex];
  StringRef name = attribute.getName();
  Attribute value = attribute.getValue();
  if (name == kDimsAttr)
    return verifyDims(op, argIndex, type, value);
  if (name == kRangeAttr)
    return verifyRange(op, argIndex, type, value);
  if (name == kPersistentAttr) {
    if (!isa<UnitAttr>(value))
      return emitAttrError(op, "argument", argIndex, name)
             << "must be a unit attribute";
    if (!isa<ShapedType>(type))
      return emitAttrError(op, "argument", argIndex, name)
             << "needs a tensor or memref, got " << type;
    return success();
  }
  // Users write public functions, where a misspelt name must not be silent.
  // Passes may mark the arguments of their own private ones.
  if (!function.isPublic())
    return success();
  return emitAttrError(op, "argument", argIndex, name)
         << "is unknown; expected pgkp.dims, pgkp.persistent or pgkp.range";
}

LogicalResult PGKPDialect::verifyRegionResultAttribute(
    Operation *op, unsigned, unsigned resultIndex, NamedAttribute attribute) {
  auto function = dyn_cast<FunctionOpInterface>(op);
  if (!function || op->getName().getDialectNamespace() == "llvm")
    return success();
  StringRef name = attribute.getName();
  auto error = [&]() { return emitAttrError(op, "result", resultIndex, name); };
  if (name != kCarriesAttr) {
    if (!function.isPublic())
      return success();
    return error() << "is unknown; expected pgkp.carries";
  }
  if (isa<KernelOp>(op))
    return error() << "is not allowed on a kernel";
  auto position = dyn_cast<IntegerAttr>(attribute.getValue());
  if (!position || !position.getType().isSignlessInteger(64))
    return error() << "must be a 64-bit integer";
  int64_t argument = position.getInt();
  if (argument < 0 || argument >= function.getNumArguments())
    return error() << "refers to argument #" << argument
                   << "; the function has " << function.getNumArguments();
  if (!function.getArgAttr(argument, kPersistentAttr))
    return error() << "refers to argument #" << argument
                   << ", which is not pgkp.persistent";
  Type from = function.getResultTypes()[resultIndex];
  Type to = function.getArgumentTypes()[argument];
  auto fromShaped = dyn_cast<ShapedType>(from);
  auto toShaped = dyn_cast<ShapedType>(to);
  if (!fromShaped || !toShaped ||
      fromShaped.getElementType() != toShaped.getElementType() ||
      failed(verifyCompatibleShape(from, to)))
    return error() << "refers to argument #" << argument << " of type " << to
                   << ", which cannot take a value of type " << from;
  for (unsigned other = 0; other < resultIndex; ++other)
    if (function.getResultAttr(other, kCarriesAttr) == attribute.getValue())
      return error() << "refers to argument #" << argument << ", which result #"
                     << other << " carries already";
  return success();
}
