// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPOps.cpp - Operations of the pgkp dialect -----------------------===//

#include "pgkp/Dialect/IR/PGKPOps.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Builders.h"
#include "mlir/Interfaces/FunctionImplementation.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

using namespace mlir;
using namespace mlir::pgkp;

#define GET_OP_CLASSES
#include "pgkp/Dialect/IR/PGKPOps.cpp.inc"

//===----------------------------------------------------------------------===//
// KernelOp: building and syntax
//===----------------------------------------------------------------------===//

void KernelOp::build(OpBuilder &builder, OperationState &state, StringRef name,
                     FunctionType type, ArrayRef<StringRef> dims,
                     ArrayAttr argDims, ArrayRef<NamedAttribute> attrs) {
  state.addAttribute(getSymNameAttrName(state.name),
                     builder.getStringAttr(name));
  state.addAttribute(getSymVisibilityAttrName(state.name),
                     builder.getStringAttr("private"));
  state.addAttribute(getFunctionTypeAttrName(state.name), TypeAttr::get(type));
  state.addAttribute(getDimsAttrName(state.name),
                     builder.getStrArrayAttr(dims));
  state.addAttribute(getArgDimsAttrName(state.name), argDims);
  state.attributes.append(attrs.begin(), attrs.end());
  state.addRegion();
}

ParseResult KernelOp::parse(OpAsmParser &parser, OperationState &result) {
  Builder &builder = parser.getBuilder();
  StringAttr name;
  (void)impl::parseOptionalVisibilityKeyword(parser, result.attributes);
  if (parser.parseSymbolName(name, getSymNameAttrName(result.name),
                             result.attributes))
    return failure();

  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> argumentTypes, resultTypes;
  SmallVector<DictionaryAttr> resultAttrs;
  bool isVariadic = false;
  if (function_interface_impl::parseFunctionSignatureWithArguments(
          parser, /*allowVariadic=*/false, arguments, isVariadic, resultTypes,
          resultAttrs))
    return failure();
  for (const OpAsmParser::Argument &argument : arguments)
    argumentTypes.push_back(argument.type);
  result.addAttribute(
      getFunctionTypeAttrName(result.name),
      TypeAttr::get(builder.getFunctionType(argumentTypes, resultTypes)));

  SmallVector<Attribute> dims, argDims;
  if (parser.parseKeyword("dims") ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren,
                                     [&]() -> ParseResult {
                                       std::string dim;
                                       if (parser.parseKeywordOrString(&dim))
                                         return failure();
                                       dims.push_back(
                                           builder.getStringAttr(dim));
                                       return success();
                                     }) ||
      parser.parseKeyword("args") ||
      parser.parseCommaSeparatedList(
          AsmParser::Delimiter::Paren, [&]() -> ParseResult {
            SmallVector<Attribute> binding;
            if (parser.parseCommaSeparatedList(
                    AsmParser::Delimiter::Square, [&]() -> ParseResult {
                      int64_t constant = 0;
                      OptionalParseResult integer =
                          parser.parseOptionalInteger(constant);
                      if (integer.has_value()) {
                        binding.push_back(builder.getI64IntegerAttr(constant));
                        return *integer;
                      }
                      std::string dim;
                      if (parser.parseKeywordOrString(&dim))
                        return failure();
                      binding.push_back(builder.getStringAttr(dim));
                      return success();
                    }))
              return failure();
            argDims.push_back(builder.getArrayAttr(binding));
            return success();
          }))
    return failure();
  result.addAttribute(getDimsAttrName(result.name), builder.getArrayAttr(dims));
  result.addAttribute(getArgDimsAttrName(result.name),
                      builder.getArrayAttr(argDims));

  NamedAttrList attributes;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDictWithKeyword(attributes))
    return failure();
  for (StringAttr inferred :
       {getSymNameAttrName(result.name), getSymVisibilityAttrName(result.name),
        getFunctionTypeAttrName(result.name), getDimsAttrName(result.name),
        getArgDimsAttrName(result.name), getArgAttrsAttrName(result.name),
        getResAttrsAttrName(result.name)})
    if (attributes.get(inferred))
      return parser.emitError(loc)
             << "'" << inferred.getValue()
             << "' is part of the signature and must not be given again";
  // An attribute of the wrong type would be dropped without a word.
  if (failed(verifyInherentAttrs(result.name, attributes, [&]() {
        return parser.emitError(loc)
               << "'" << result.name.getStringRef() << "' op ";
      })))
    return failure();
  result.attributes.append(attributes);
  call_interface_impl::addArgAndResultAttrs(
      builder, result, arguments, resultAttrs, getArgAttrsAttrName(result.name),
      getResAttrsAttrName(result.name));

  Region *body = result.addRegion();
  OptionalParseResult parsed = parser.parseOptionalRegion(
      *body, arguments, /*enableNameShadowing=*/false);
  return parsed.has_value() ? *parsed : success();
}

void KernelOp::print(OpAsmPrinter &p) {
  p << ' ';
  if (std::optional<StringRef> visibility = getSymVisibility())
    p << *visibility << ' ';
  p.printSymbolName(getSymName());
  function_interface_impl::printFunctionSignature(
      p, *this, getArgumentTypes(), /*isVariadic=*/false, getResultTypes());
  p << " dims(";
  llvm::interleaveComma(getDims().getAsValueRange<StringAttr>(), p,
                        [&](StringRef dim) { p.printKeywordOrString(dim); });
  p << ") args(";
  llvm::interleaveComma(getArgDims().getAsRange<ArrayAttr>(), p,
                        [&](ArrayAttr binding) {
                          p << '[';
                          llvm::interleaveComma(binding, p, [&](Attribute dim) {
                            if (auto symbol = dyn_cast<StringAttr>(dim))
                              p.printKeywordOrString(symbol.getValue());
                            else
                              p << cast<IntegerAttr>(dim).getInt();
                          });
                          p << ']';
                        });
  p << ')';
  function_interface_impl::printFunctionAttributes(
      p, *this,
      {getSymVisibilityAttrName(), getFunctionTypeAttrName(), getDimsAttrName(),
       getArgDimsAttrName(), getArgAttrsAttrName(), getResAttrsAttrName()});
  if (!getBody().empty()) {
    p << ' ';
    p.printRegion(getBody(), /*printEntryBlockArgs=*/false,
                  /*printBlockTerminators=*/true);
  }
}

//===----------------------------------------------------------------------===//
// KernelOp: queries and verification
//===----------------------------------------------------------------------===//

std::optional<unsigned> KernelOp::getDimIndex(StringRef name) {
  for (auto [index, dim] :
       llvm::enumerate(getDims().getAsValueRange<StringAttr>()))
    if (dim == name)
      return index;
  return std::nullopt;
}

SmallVector<ExprAttr> KernelOp::getArgumentExtents(unsigned argument) {
  SmallVector<ExprAttr> extents;
  for (Attribute dim : cast<ArrayAttr>(getArgDims()[argument])) {
    if (auto symbol = dyn_cast<StringAttr>(dim))
      extents.push_back(
          ExprAttr::getSymbol(getContext(), *getDimIndex(symbol.getValue())));
    else
      extents.push_back(
          ExprAttr::getConstant(getContext(), cast<IntegerAttr>(dim).getInt()));
  }
  return extents;
}

/// Checks the binding of one argument's dimensions, and marks its symbols in
/// `bound`.
static LogicalResult verifyBinding(KernelOp kernel, unsigned argument,
                                   SmallVectorImpl<bool> &bound) {
  Type type = kernel.getArgumentTypes()[argument];
  auto binding = cast<ArrayAttr>(kernel.getArgDims()[argument]);
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor && !type.isIntOrIndexOrFloat())
    return kernel.emitOpError("argument #")
           << argument << " has type " << type
           << "; expected a ranked tensor, integer, index or float";
  size_t rank = tensor ? tensor.getRank() : 0;
  if (binding.size() != rank)
    return kernel.emitOpError("argument #")
           << argument << " of type " << type << " binds " << binding.size()
           << " dimensions; expected " << rank;
  for (auto [dim, value] : llvm::enumerate(binding)) {
    auto error = [&, dim = dim]() {
      return kernel.emitOpError("argument #")
             << argument << " dimension " << dim << " ";
    };
    if (auto symbol = dyn_cast<StringAttr>(value)) {
      if (!tensor.isDynamicDim(dim))
        return error() << "is static but bound to symbol '" << symbol.getValue()
                       << "'; expected " << tensor.getDimSize(dim);
      std::optional<unsigned> index = kernel.getDimIndex(symbol.getValue());
      if (!index)
        return error() << "is bound to '" << symbol.getValue()
                       << "', which 'dims' does not declare";
      bound[*index] = true;
      continue;
    }
    auto constant = dyn_cast<IntegerAttr>(value);
    if (!constant || !constant.getType().isSignlessInteger(64))
      return error() << "is bound to " << value
                     << "; expected a symbol or a 64-bit integer";
    if (tensor.isDynamicDim(dim))
      return error() << "is dynamic but bound to " << constant.getInt()
                     << "; expected a symbol";
    if (constant.getInt() != tensor.getDimSize(dim))
      return error() << "is static " << tensor.getDimSize(dim)
                     << " but bound to " << constant.getInt();
  }
  return success();
}

LogicalResult KernelOp::verify() {
  if (!isPrivate())
    return emitOpError("must be private");

  llvm::SmallDenseSet<StringRef> names;
  for (StringRef dim : getDims().getAsValueRange<StringAttr>()) {
    if (dim.empty())
      return emitOpError("'dims' has an empty name");
    if (!names.insert(dim).second)
      return emitOpError("'dims' declares '") << dim << "' twice";
  }

  unsigned numArguments = getArgumentTypes().size();
  unsigned numResults = getResultTypes().size();
  if (getArgDims().size() != numArguments)
    return emitOpError("'args' binds ")
           << getArgDims().size() << " arguments; expected " << numArguments;
  if (numResults == 0)
    return emitOpError("has no results; a kernel writes at least one tensor");
  if (numResults > numArguments)
    return emitOpError("has ")
           << numResults << " results but " << numArguments
           << " arguments; the last arguments are the results' destinations";

  SmallVector<bool> bound(getNumDims(), false);
  for (unsigned argument = 0; argument < numArguments; ++argument)
    if (failed(verifyBinding(*this, argument, bound)))
      return failure();
  for (auto [index, isBound] : llvm::enumerate(bound))
    if (!isBound)
      return emitOpError("symbol '")
             << getDimName(index) << "' is not bound by any argument";

  for (auto [index, type] : llvm::enumerate(getResultTypes())) {
    unsigned destination = getNumInputs() + index;
    Type destinationType = getArgumentTypes()[destination];
    if (!isa<RankedTensorType>(type))
      return emitOpError("result #")
             << index << " has type " << type << "; expected a ranked tensor";
    if (destinationType != type)
      return emitOpError("result #")
             << index << " has type " << type << " but its destination, "
             << "argument #" << destination << ", has type " << destinationType;
  }

  if (ArrayAttr classes = getClassesAttr())
    for (auto [index, attr] : llvm::enumerate(classes.getAsRange<ClassAttr>()))
      for (FactAttr fact : attr.getFacts())
        if (fact.getDim() >= getNumDims())
          return emitOpError("class #")
                 << index << " has a fact on d" << fact.getDim()
                 << "; the kernel has " << getNumDims() << " symbols";
  if (CostAttr cost = getCostAttr()) {
    unsigned used = std::max(cost.getFlops().getNumSymbols(),
                             cost.getBytes().getNumSymbols());
    if (used > getNumDims())
      return emitOpError("cost refers to s")
             << used - 1 << "; the kernel has " << getNumDims() << " symbols";
  }
  return success();
}

LogicalResult KernelOp::verifyRegions() {
  if (isExternal())
    return success();
  Operation &last = getBody().front().back();
  if (!isa<ReturnOp>(last))
    return emitOpError("body must end in 'pgkp.return', got '")
           << last.getName() << "'";
  return success();
}

LogicalResult ReturnOp::verify() {
  auto kernel = cast<KernelOp>((*this)->getParentOp());
  ArrayRef<Type> expected = kernel.getResultTypes();
  if (getNumOperands() != expected.size())
    return emitOpError("has ")
           << getNumOperands() << " operands; kernel '" << kernel.getSymName()
           << "' returns " << expected.size();
  for (auto [index, operand, type] :
       llvm::enumerate(getOperandTypes(), expected))
    if (operand != type)
      return emitOpError("operand #")
             << index << " has type " << operand << "; kernel '"
             << kernel.getSymName() << "' returns " << type;
  return success();
}

//===----------------------------------------------------------------------===//
// Uses of kernels
//===----------------------------------------------------------------------===//

/// Looks up the kernel that `op` refers to and checks the length of its extents
/// vector. Returns null after an error.
static KernelOp verifyKernelUse(Operation *op, FlatSymbolRefAttr symbol,
                                size_t numExtents,
                                SymbolTableCollection &symbolTables) {
  Operation *target = symbolTables.lookupNearestSymbolFrom(op, symbol);
  if (!target) {
    op->emitOpError() << "kernel '" << symbol.getValue() << "' does not exist";
    return {};
  }
  auto kernel = dyn_cast<KernelOp>(target);
  if (!kernel) {
    op->emitOpError() << "'" << symbol.getValue() << "' is a '"
                      << target->getName() << "'; expected a 'pgkp.kernel'";
    return {};
  }
  if (numExtents != kernel.getNumDims()) {
    op->emitOpError() << "has " << numExtents << " extents; kernel '"
                      << symbol.getValue() << "' has " << kernel.getNumDims()
                      << " symbols";
    return {};
  }
  return kernel;
}

/// Preparation is the business of the thread that dispatches: one hint per
/// iteration of a parallel loop, or from a device, is a mistake.
static LogicalResult verifyNotParallel(Operation *op) {
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp()) {
    StringRef name = parent->getName().getStringRef();
    if (parent->hasTrait<OpTrait::HasParallelRegion>() ||
        name == "gpu.launch" || name == "gpu.func" || isa<KernelOp>(parent))
      return op->emitOpError("must not be nested in '") << name << "'";
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DispatchOp
//===----------------------------------------------------------------------===//

void DispatchOp::build(OpBuilder &builder, OperationState &state,
                       FlatSymbolRefAttr kernel, ValueRange extents,
                       ValueRange inputs, ValueRange outputs) {
  SmallVector<Type> resultTypes;
  for (Type type : outputs.getTypes())
    if (isa<TensorType>(type))
      resultTypes.push_back(type);
  build(builder, state, resultTypes, kernel, extents, inputs, outputs,
        /*arg_attrs=*/ArrayAttr(), /*res_attrs=*/ArrayAttr());
}

void DispatchOp::build(OpBuilder &builder, OperationState &state,
                       KernelOp kernel, ValueRange extents, ValueRange inputs,
                       ValueRange outputs) {
  build(builder, state, FlatSymbolRefAttr::get(kernel.getSymNameAttr()),
        extents, inputs, outputs);
}

LogicalResult DispatchOp::verify() {
  if (getOutputs().empty())
    return emitOpError("has no 'outs'");
  bool onTensors = isa<TensorType>(getOutputs().front().getType());
  for (Value operand : getArgOperands()) {
    Type type = operand.getType();
    if (onTensors ? isa<BaseMemRefType>(type) : isa<TensorType>(type))
      return emitOpError("mixes tensors and memrefs");
    auto memref = dyn_cast<MemRefType>(type);
    if (memref && !memref.getLayout().isIdentity())
      return emitOpError("operand of type ")
             << type << " does not have the identity layout";
  }
  // Types and number of results on tensors: DestinationStyleOpInterface.
  if ((*this)->getParentOfType<KernelOp>())
    return emitOpError("must not be nested in 'pgkp.kernel'");
  return success();
}

/// Whether a kernel argument takes an operand: the same type, or a tensor or
/// memref of the same element type whose dimensions are the same or static.
static bool accepts(Type argument, Type operand) {
  auto tensor = dyn_cast<RankedTensorType>(argument);
  auto shaped = dyn_cast<ShapedType>(operand);
  if (!tensor || !shaped)
    return argument == operand;
  if (!shaped.hasRank() || shaped.getElementType() != tensor.getElementType() ||
      shaped.getRank() != tensor.getRank())
    return false;
  return llvm::all_of(
      llvm::zip(tensor.getShape(), shaped.getShape()), [](auto dims) {
        auto [expected, actual] = dims;
        return ShapedType::isDynamic(expected) || expected == actual;
      });
}

LogicalResult
DispatchOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  KernelOp kernel = verifyKernelUse(*this, getKernelAttr(), getExtents().size(),
                                    symbolTables);
  if (!kernel)
    return failure();
  auto verifyCount = [&](StringRef what, size_t count,
                         size_t expected) -> LogicalResult {
    if (count == expected)
      return success();
    return emitOpError("has ") << count << " '" << what << "'; kernel '"
                               << getKernel() << "' takes " << expected;
  };
  if (failed(verifyCount("ins", getInputs().size(), kernel.getNumInputs())) ||
      failed(verifyCount("outs", getOutputs().size(),
                         kernel.getNumDestinations())))
    return failure();
  for (auto [index, operand, type] :
       llvm::enumerate(getArgOperands().getTypes(), kernel.getArgumentTypes()))
    if (!accepts(type, operand))
      return emitOpError("operand #")
             << index << " has type " << operand << "; kernel '" << getKernel()
             << "' takes " << type;
  return success();
}

KernelOp DispatchOp::lookupKernel(SymbolTableCollection &symbolTables) {
  return symbolTables.lookupNearestSymbolFrom<KernelOp>(*this, getKernelAttr());
}

CallInterfaceCallable DispatchOp::getCallableForCallee() {
  return getKernelAttr();
}

void DispatchOp::setCalleeFromCallable(CallInterfaceCallable callee) {
  setKernelAttr(cast<FlatSymbolRefAttr>(cast<SymbolRefAttr>(callee)));
}

Operation::operand_range DispatchOp::getArgOperands() {
  return getOperands().drop_front(getODSOperandIndexAndLength(0).second);
}

MutableOperandRange DispatchOp::getArgOperandsMutable() {
  // Both segments are variadic: a change of length must go through
  // getInputsMutable or getOutputsMutable.
  unsigned first = getODSOperandIndexAndLength(0).second;
  return MutableOperandRange(*this, first, (*this)->getNumOperands() - first);
}

void DispatchOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  for (OpOperand &operand : (*this)->getOpOperands()) {
    if (!isa<BaseMemRefType>(operand.get().getType()))
      continue;
    effects.emplace_back(MemoryEffects::Read::get(), &operand,
                         SideEffects::DefaultResource::get());
    if (isDpsInit(&operand))
      effects.emplace_back(MemoryEffects::Write::get(), &operand,
                           SideEffects::DefaultResource::get());
  }
}

Speculation::Speculatability DispatchOp::getSpeculatability() {
  return getNumResults() ? Speculation::Speculatable
                         : Speculation::NotSpeculatable;
}

LogicalResult DispatchOp::reifyResultShapes(
    OpBuilder &builder, ReifiedRankedShapedTypeDims &reifiedReturnShapes) {
  if (getNumResults() == 0)
    return failure();
  for (Value output : getOutputs())
    reifiedReturnShapes.push_back(
        tensor::getMixedSizes(builder, getLoc(), output));
  return success();
}

SymbolRefAttr DispatchOp::getKernelRef() { return getKernelAttr(); }

Operation *DispatchOp::buildPrepare(OpBuilder &builder, Location loc,
                                    ValueRange extents, double probability,
                                    double slack, Stage stage,
                                    Provenance provenance) {
  return PrepareOp::create(builder, loc, getKernelAttr(), extents, probability,
                           slack, stage, provenance);
}

Operation *DispatchOp::getKernelSource(SymbolTableCollection &symbolTables) {
  return lookupKernel(symbolTables);
}

CostAttr DispatchOp::getCostHint(SymbolTableCollection &symbolTables) {
  KernelOp kernel = lookupKernel(symbolTables);
  return kernel ? kernel.getCostAttr() : CostAttr();
}

//===----------------------------------------------------------------------===//
// PrepareOp, ObserveOp, AwaitOp
//===----------------------------------------------------------------------===//

void PrepareOp::build(OpBuilder &builder, OperationState &state,
                      FlatSymbolRefAttr kernel, ValueRange extents,
                      double probability, double slack, Stage stage,
                      Provenance provenance) {
  state.addOperands(extents);
  auto &properties = state.getOrAddProperties<Properties>();
  properties.kernel = kernel;
  properties.probability = builder.getF64FloatAttr(probability);
  properties.slack = builder.getF64FloatAttr(slack);
  properties.stage = StageAttr::get(builder.getContext(), stage);
  properties.provenance = ProvenanceAttr::get(builder.getContext(), provenance);
}

LogicalResult PrepareOp::verify() {
  double probability = getProbability().convertToDouble();
  if (!(probability >= 0.0 && probability <= 1.0))
    return emitOpError("probability is ")
           << getProbabilityAttr() << "; expected a value in [0, 1]";
  double slack = getSlack().convertToDouble();
  if (!(slack >= 0.0 && getSlack().isFinite()))
    return emitOpError("slack is ")
           << getSlackAttr() << "; expected a finite number of seconds >= 0";
  return verifyNotParallel(*this);
}

LogicalResult PrepareOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  return success(verifyKernelUse(*this, getKernelAttr(), getExtents().size(),
                                 symbolTables));
}

LogicalResult ObserveOp::verify() { return verifyNotParallel(*this); }

LogicalResult ObserveOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  Operation *target =
      symbolTables.lookupNearestSymbolFrom(*this, getEntryAttr());
  if (!target)
    return emitOpError("entry '") << getEntry() << "' does not exist";
  auto entry = dyn_cast<FunctionOpInterface>(target);
  if (!entry || !isEntry(entry))
    return emitOpError("'")
           << getEntry() << "' is not an entry; expected a public function "
           << "with a body and a tensor or memref argument";
  SmallVector<StringRef> names = getRootNames(entry);
  if (names.size() != getRoots().size())
    return emitOpError("has ")
           << getRoots().size() << " roots; entry '" << getEntry() << "' has "
           << names.size() << ": [" << llvm::join(names, ", ") << "]";
  return success();
}

LogicalResult AwaitOp::verify() {
  if (getTimeoutUsAttr().getInt() < 0)
    return emitOpError("timeout_us is ")
           << getTimeoutUsAttr().getInt() << "; expected a value >= 0";
  return verifyNotParallel(*this);
}

LogicalResult AwaitOp::verifySymbolUses(SymbolTableCollection &symbolTables) {
  return success(verifyKernelUse(*this, getKernelAttr(), getExtents().size(),
                                 symbolTables));
}
