// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPAttrs.cpp - Attributes of the pgkp dialect ---------------------===//

#include "pgkp/Dialect/IR/PGKPAttrs.h"
#include "pgkp/Dialect/IR/PGKPDialect.h"

#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/TypeSwitch.h"

#include <numeric>
#include <tuple>

using namespace mlir;
using namespace mlir::pgkp;

/// Joins facts per extent and sorts them. Facts that exclude each other stay
/// side by side, for the verifier to name.
static SmallVector<FactAttr> canonicalizeFacts(ArrayRef<FactAttr> facts);

#include "pgkp/Dialect/IR/PGKPEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "pgkp/Dialect/IR/PGKPAttrs.cpp.inc"

void PGKPDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "pgkp/Dialect/IR/PGKPAttrs.cpp.inc"
      >();
}

// Here and not in PGKPExpr.cpp because it needs the generated storage class.
ExprAttr ExprAttr::getUniqued(MLIRContext *ctx, ExprKind kind, int64_t value,
                              ArrayRef<ExprAttr> operands) {
  return Base::get(ctx, kind, value, operands);
}

//===----------------------------------------------------------------------===//
// FactAttr
//===----------------------------------------------------------------------===//

LogicalResult FactAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               FactKind kind, unsigned dim, int64_t lo,
                               int64_t hi) {
  switch (kind) {
  case FactKind::Equal:
    if (lo < 0)
      return emitError() << "fact on d" << dim << ": extent " << lo
                         << " is negative";
    return success();
  case FactKind::Divisible:
    if (lo < 2)
      return emitError() << "fact on d" << dim << ": divisor is " << lo
                         << "; expected at least 2";
    return success();
  case FactKind::Range:
    if (lo < 0 || lo > hi)
      return emitError() << "fact on d" << dim << ": range is [" << lo << ", "
                         << hi << "]; expected 0 <= lower <= upper";
    return success();
  }
  llvm_unreachable("unknown fact kind");
}

bool FactAttr::holdsFor(int64_t extent) const {
  switch (getKind()) {
  case FactKind::Equal:
    return extent == getLo();
  case FactKind::Divisible:
    return extent % getLo() == 0;
  case FactKind::Range:
    return extent >= getLo() && extent <= getHi();
  }
  llvm_unreachable("unknown fact kind");
}

FailureOr<FactAttr> FactAttr::parseBody(AsmParser &parser) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef name;
  unsigned dim;
  if (failed(parser.parseKeyword(&name)))
    return failure();
  StringRef digits = name;
  if (!digits.consume_front("d") || digits.getAsInteger(10, dim))
    return parser.emitError(loc)
           << "expected an extent 'd<N>', got '" << name << "'";

  FactKind kind;
  int64_t lo, hi;
  StringRef keyword;
  if (succeeded(parser.parseOptionalEqual())) {
    kind = FactKind::Equal;
    if (parser.parseEqual() || parser.parseInteger(lo))
      return failure();
    hi = lo;
  } else if (succeeded(parser.parseOptionalKeyword(&keyword, {"mod", "in"}))) {
    if (keyword == "mod") {
      int64_t zero;
      SMLoc restLoc;
      kind = FactKind::Divisible;
      if (parser.parseInteger(lo) || parser.parseEqual() ||
          parser.parseEqual() || parser.getCurrentLocation(&restLoc) ||
          parser.parseInteger(zero))
        return failure();
      if (zero != 0)
        return parser.emitError(restLoc)
               << "expected remainder 0, got " << zero;
      hi = lo;
    } else {
      kind = FactKind::Range;
      if (parser.parseLSquare() || parser.parseInteger(lo) ||
          parser.parseComma() || parser.parseInteger(hi) ||
          parser.parseRSquare())
        return failure();
    }
  } else {
    return parser.emitError(parser.getCurrentLocation())
           << "expected '==', 'mod' or 'in' after '" << name << "'";
  }
  FactAttr fact =
      parser.getChecked<FactAttr>(loc, parser.getContext(), kind, dim, lo, hi);
  if (!fact)
    return failure();
  return fact;
}

void FactAttr::printBody(raw_ostream &os) const {
  os << 'd' << getDim();
  switch (getKind()) {
  case FactKind::Equal:
    os << " == " << getLo();
    return;
  case FactKind::Divisible:
    os << " mod " << getLo() << " == 0";
    return;
  case FactKind::Range:
    os << " in [" << getLo() << ", " << getHi() << ']';
    return;
  }
}

Attribute FactAttr::parse(AsmParser &parser, Type) {
  if (failed(parser.parseLess()))
    return {};
  FailureOr<FactAttr> fact = parseBody(parser);
  if (failed(fact) || failed(parser.parseGreater()))
    return {};
  return *fact;
}

void FactAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer.getStream());
  printer << '>';
}

//===----------------------------------------------------------------------===//
// ClassAttr
//===----------------------------------------------------------------------===//

/// Least common multiple, or none above 64 bits.
static std::optional<int64_t> leastCommonMultiple(int64_t a, int64_t b) {
  __int128 product = static_cast<__int128>(a / std::gcd(a, b)) * b;
  if (product > std::numeric_limits<int64_t>::max())
    return std::nullopt;
  return static_cast<int64_t>(product);
}

/// Whether some extent in [lo, hi] is a multiple of `divisor`.
static bool hasMultiple(int64_t lo, int64_t hi, int64_t divisor) {
  return hi - hi % divisor >= lo;
}

static SmallVector<FactAttr> canonicalizeFacts(ArrayRef<FactAttr> facts) {
  SmallVector<FactAttr> result;
  auto add = [&](FactAttr fact) {
    // Joining one pair may enable another: start over with the joined fact.
    SmallVector<FactAttr> pending{fact};
    while (!pending.empty()) {
      FactAttr next = pending.pop_back_val();
      bool absorbed = false;
      for (auto *it = result.begin(); it != result.end(); ++it) {
        FactAttr old = *it;
        if (old.getDim() != next.getDim())
          continue;
        MLIRContext *ctx = next.getContext();
        FactAttr joined;
        if (old == next) {
          joined = old;
        } else if (old.getKind() == FactKind::Equal &&
                   next.getKind() != FactKind::Equal &&
                   next.holdsFor(old.getValue())) {
          joined = old;
        } else if (next.getKind() == FactKind::Equal &&
                   old.getKind() != FactKind::Equal &&
                   old.holdsFor(next.getValue())) {
          joined = next;
        } else if (old.getKind() == FactKind::Divisible &&
                   next.getKind() == FactKind::Divisible) {
          if (auto lcm = leastCommonMultiple(old.getValue(), next.getValue()))
            joined = FactAttr::getDivisible(ctx, old.getDim(), *lcm);
        } else if (old.getKind() == FactKind::Range &&
                   next.getKind() == FactKind::Range) {
          int64_t lo = std::max(old.getLo(), next.getLo());
          int64_t hi = std::min(old.getHi(), next.getHi());
          if (lo <= hi)
            joined = FactAttr::getRange(ctx, old.getDim(), lo, hi);
        }
        if (!joined)
          continue;
        if (joined == old) {
          absorbed = true;
          break;
        }
        result.erase(it);
        pending.push_back(joined);
        absorbed = true;
        break;
      }
      if (!absorbed)
        result.push_back(next);
    }
  };
  for (FactAttr fact : facts)
    add(fact);
  llvm::sort(result, [](FactAttr a, FactAttr b) {
    return std::make_tuple(a.getDim(), a.getKind(), a.getLo(), a.getHi()) <
           std::make_tuple(b.getDim(), b.getKind(), b.getLo(), b.getHi());
  });
  return result;
}

bool ClassAttr::matches(ArrayRef<int64_t> extents) const {
  return llvm::all_of(getFacts(),
                      [&](FactAttr fact) { return fact.holds(extents); });
}

LogicalResult ClassAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                ArrayRef<FactAttr> facts,
                                FloatAttr probabilityAttr, Provenance) {
  if (!probabilityAttr.getType().isF64())
    return emitError() << "class probability has type "
                       << probabilityAttr.getType() << "; expected 'f64'";
  double probability = probabilityAttr.getValueAsDouble();
  if (!(probability >= 0.0 && probability <= 1.0))
    return emitError() << "class probability is " << probability
                       << "; expected a value in [0, 1]";
  // Per extent, canonical facts are at most one equality (alone), or a
  // divisibility and a range that have a common extent.
  for (size_t i = 0; i + 1 < facts.size(); ++i) {
    FactAttr a = facts[i], b = facts[i + 1];
    if (a.getDim() != b.getDim())
      continue;
    if (a.getKind() == FactKind::Divisible && b.getKind() == FactKind::Range &&
        hasMultiple(b.getLo(), b.getHi(), a.getValue()))
      continue;
    std::string message;
    llvm::raw_string_ostream os(message);
    os << '\'';
    a.printBody(os);
    os << "' and '";
    b.printBody(os);
    os << '\'';
    return emitError() << "facts " << message << " exclude each other";
  }
  return success();
}

Attribute ClassAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<FactAttr> facts;
  double probability;
  StringRef keyword;
  SMLoc provenanceLoc;
  if (parser.parseLess() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     [&]() -> ParseResult {
                                       FailureOr<FactAttr> fact =
                                           FactAttr::parseBody(parser);
                                       if (failed(fact))
                                         return failure();
                                       facts.push_back(*fact);
                                       return success();
                                     }) ||
      parser.parseKeyword("probability") || parser.parseFloat(probability) ||
      parser.parseKeyword("provenance") ||
      parser.getCurrentLocation(&provenanceLoc) ||
      parser.parseKeyword(&keyword) || parser.parseGreater())
    return {};
  std::optional<Provenance> provenance = symbolizeProvenance(keyword);
  if (!provenance) {
    parser.emitError(provenanceLoc)
        << "expected structure, profile, announcement, history or user, got '"
        << keyword << "'";
    return {};
  }
  return parser.getChecked<ClassAttr>(loc, parser.getContext(),
                                      ArrayRef<FactAttr>(facts), probability,
                                      *provenance);
}

void ClassAttr::print(AsmPrinter &printer) const {
  printer << "<[";
  llvm::interleaveComma(getFacts(), printer.getStream(), [&](FactAttr fact) {
    fact.printBody(printer.getStream());
  });
  printer << "] probability ";
  printer.printFloat(getProbabilityAttr().getValue());
  printer << " provenance " << stringifyProvenance(getProvenance()) << '>';
}

//===----------------------------------------------------------------------===//
// ConfigAttr
//===----------------------------------------------------------------------===//

LogicalResult ConfigAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                                 DictionaryAttr values) {
  for (NamedAttribute entry : values) {
    Attribute value = entry.getValue();
    auto integer = dyn_cast<IntegerAttr>(value);
    if (isa<StringAttr, FloatAttr, DenseI64ArrayAttr>(value) ||
        (integer && (integer.getType().isSignlessInteger(64) ||
                     integer.getType().isSignlessInteger(1))))
      continue;
    return emitError() << "configuration value '" << entry.getName().strref()
                       << "' is " << value
                       << "; expected an i64, float, bool, string or "
                          "array<i64>";
  }
  return success();
}

std::optional<int64_t> ConfigAttr::getInt(StringRef name) const {
  auto value = getValues().getAs<IntegerAttr>(name);
  if (!value)
    return std::nullopt;
  // A boolean is 0 or 1.
  return value.getType().isSignlessInteger(1)
             ? static_cast<int64_t>(value.getValue().getZExtValue())
             : value.getValue().getSExtValue();
}

std::optional<StringRef> ConfigAttr::getString(StringRef name) const {
  auto value = getValues().getAs<StringAttr>(name);
  return value ? std::optional<StringRef>(value.getValue()) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// CostAttr
//===----------------------------------------------------------------------===//

Attribute CostAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess() || parser.parseKeyword("flops") || parser.parseEqual())
    return {};
  FailureOr<ExprAttr> flops = ExprAttr::parseBody(parser);
  if (failed(flops) || parser.parseComma() || parser.parseKeyword("bytes") ||
      parser.parseEqual())
    return {};
  FailureOr<ExprAttr> bytes = ExprAttr::parseBody(parser);
  if (failed(bytes) || parser.parseGreater())
    return {};
  return CostAttr::get(parser.getContext(), *flops, *bytes);
}

void CostAttr::print(AsmPrinter &printer) const {
  printer << "<flops = ";
  getFlops().printBody(printer.getStream());
  printer << ", bytes = ";
  getBytes().printBody(printer.getStream());
  printer << '>';
}
