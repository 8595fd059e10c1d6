// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPExpr.cpp - Expressions over symbols ----------------------------===//
//
// Canonical forms, evaluation and syntax of #pgkp.expr. Canonicalization must
// not depend on the order of operands: parsing a printed expression gives the
// same attribute back. That is why constants are collected in 128 bits and why
// an expression whose constants leave 64 bits is kept as it was written.
//
//===----------------------------------------------------------------------===//

#include "pgkp/Dialect/IR/PGKPAttrs.h"

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/OpImplementation.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

#include <limits>

using namespace mlir;
using namespace mlir::pgkp;

/// Products are expanded over sums up to this number of resulting terms.
static constexpr uint64_t kMaxExpandedTerms = 32;
/// Limit on nested parentheses: parsing and printing recurse.
static constexpr unsigned kMaxNesting = 128;

using Wide = __int128;

static bool fitsInt64(Wide value) {
  return value >= std::numeric_limits<int64_t>::min() &&
         value <= std::numeric_limits<int64_t>::max();
}

/// Total order of canonical operands: leaves first, constants last.
static int compare(ExprAttr a, ExprAttr b) {
  if (a == b)
    return 0;
  if (a.getKind() != b.getKind())
    return a.getKind() < b.getKind() ? -1 : 1;
  if (a.getValue() != b.getValue())
    return a.getValue() < b.getValue() ? -1 : 1;
  ArrayRef<ExprAttr> as = a.getOperands(), bs = b.getOperands();
  for (auto [x, y] : llvm::zip(as, bs))
    if (int order = compare(x, y))
      return order;
  assert(as.size() != bs.size() && "equal expressions must be one attribute");
  return as.size() < bs.size() ? -1 : 1;
}

/// Appends `operands` to `out`, replacing each of kind `kind` by its operands.
static void flatten(ExprKind kind, ArrayRef<ExprAttr> operands,
                    SmallVectorImpl<ExprAttr> &out) {
  for (ExprAttr operand : operands) {
    if (operand.getKind() == kind)
      flatten(kind, operand.getOperands(), out);
    else
      out.push_back(operand);
  }
}

//===----------------------------------------------------------------------===//
// Builders
//===----------------------------------------------------------------------===//

ExprAttr ExprAttr::getSorted(MLIRContext *ctx, ExprKind kind,
                             ArrayRef<ExprAttr> operands) {
  SmallVector<ExprAttr> sorted(operands);
  llvm::sort(sorted, [](ExprAttr a, ExprAttr b) { return compare(a, b) < 0; });
  return getUniqued(ctx, kind, 0, sorted);
}

ExprAttr ExprAttr::getCanonical(MLIRContext *ctx, ExprKind kind, int64_t value,
                                ArrayRef<ExprAttr> operands) {
  switch (kind) {
  case ExprKind::Constant:
    return getConstant(ctx, value);
  case ExprKind::Symbol:
    return getSymbol(ctx, value);
  case ExprKind::Sum:
    return getSum(ctx, operands);
  case ExprKind::Product:
    return getProduct(ctx, operands);
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
    assert(operands.size() == 2 && "a division has two operands");
    return getDivision(kind, operands[0], operands[1]);
  case ExprKind::Min:
  case ExprKind::Max:
    return getExtremum(ctx, kind, operands);
  }
  llvm_unreachable("unknown expression kind");
}

ExprAttr ExprAttr::getConstant(MLIRContext *ctx, int64_t value) {
  return getUniqued(ctx, ExprKind::Constant, value, {});
}

ExprAttr ExprAttr::getSymbol(MLIRContext *ctx, unsigned index) {
  return getUniqued(ctx, ExprKind::Symbol, index, {});
}

/// Splits a term of a sum into its monomial (null for a constant) and its
/// coefficient.
static std::pair<ExprAttr, int64_t> splitCoefficient(ExprAttr term) {
  if (term.isConstant())
    return {ExprAttr(), term.getValue()};
  if (term.getKind() != ExprKind::Product)
    return {term, 1};
  ArrayRef<ExprAttr> factors = term.getOperands();
  // Several constants mean that their product has no 64-bit value.
  if (!factors.back().isConstant() || factors.drop_back().back().isConstant())
    return {term, 1};
  return {ExprAttr::getProduct(term.getContext(), factors.drop_back()),
          factors.back().getValue()};
}

ExprAttr ExprAttr::getSum(MLIRContext *ctx, ArrayRef<ExprAttr> operands) {
  SmallVector<ExprAttr> terms;
  flatten(ExprKind::Sum, operands, terms);

  llvm::MapVector<ExprAttr, Wide> coefficients;
  Wide constant = 0;
  for (ExprAttr term : terms) {
    auto [monomial, coefficient] = splitCoefficient(term);
    if (monomial)
      coefficients[monomial] += coefficient;
    else
      constant += coefficient;
  }
  if (!fitsInt64(constant) || llvm::any_of(coefficients, [](auto &entry) {
        return !fitsInt64(entry.second);
      }))
    return getSorted(ctx, ExprKind::Sum, terms);

  SmallVector<ExprAttr> joined;
  bool nested = false;
  for (auto &[monomial, coefficient] : coefficients) {
    if (coefficient == 0)
      continue;
    joined.push_back(
        coefficient == 1
            ? monomial
            : getProduct(ctx, {monomial, getConstant(ctx, coefficient)}));
    nested |= joined.back().getKind() == ExprKind::Sum;
  }
  if (constant != 0 || joined.empty())
    joined.push_back(getConstant(ctx, constant));
  if (joined.size() == 1)
    return joined.front();
  // A product that was too long to expand may have lost its coefficient.
  return nested ? getSum(ctx, joined) : getSorted(ctx, ExprKind::Sum, joined);
}

ExprAttr ExprAttr::getProduct(MLIRContext *ctx, ArrayRef<ExprAttr> operands) {
  SmallVector<ExprAttr> factors, others;
  flatten(ExprKind::Product, operands, factors);

  Wide constant = 1;
  bool zero = false, overflow = false;
  uint64_t numTerms = 1;
  for (ExprAttr factor : factors) {
    if (!factor.isConstant()) {
      others.push_back(factor);
      if (factor.getKind() == ExprKind::Sum)
        numTerms = llvm::SaturatingMultiply<uint64_t>(
            numTerms, factor.getOperands().size());
      continue;
    }
    zero |= factor.getValue() == 0;
    // Without a zero the magnitude only grows, so overflow does not depend on
    // the order of factors (2^63 itself is kept: a sign may still follow).
    if (!overflow)
      constant *= factor.getValue();
    Wide magnitude = constant < 0 ? -constant : constant;
    overflow |= magnitude > (Wide(1) << 63);
  }
  if (zero)
    return getConstant(ctx, 0);
  if (overflow || !fitsInt64(constant))
    return getSorted(ctx, ExprKind::Product, factors);
  if (others.empty())
    return getConstant(ctx, constant);

  if (numTerms > 1 && numTerms <= kMaxExpandedTerms &&
      (others.size() > 1 || constant != 1)) {
    SmallVector<SmallVector<ExprAttr>> expanded(1);
    expanded.front().push_back(getConstant(ctx, constant));
    for (ExprAttr factor : others) {
      ArrayRef<ExprAttr> terms = factor.getKind() == ExprKind::Sum
                                     ? factor.getOperands()
                                     : ArrayRef<ExprAttr>(factor);
      SmallVector<SmallVector<ExprAttr>> next;
      for (const SmallVector<ExprAttr> &prefix : expanded) {
        for (ExprAttr term : terms) {
          next.push_back(prefix);
          next.back().push_back(term);
        }
      }
      expanded = std::move(next);
    }
    SmallVector<ExprAttr> sum;
    for (const SmallVector<ExprAttr> &product : expanded)
      sum.push_back(getProduct(ctx, product));
    return getSum(ctx, sum);
  }

  if (constant != 1)
    others.push_back(getConstant(ctx, constant));
  if (others.size() == 1)
    return others.front();
  return getSorted(ctx, ExprKind::Product, others);
}

/// `numerator` divided by a positive divisor, rounded down.
static int64_t floorDivide(int64_t numerator, int64_t divisor) {
  int64_t quotient = numerator / divisor;
  return numerator % divisor < 0 ? quotient - 1 : quotient;
}

/// Value of a division by a positive divisor.
static int64_t divide(ExprKind kind, int64_t numerator, int64_t divisor) {
  int64_t floor = floorDivide(numerator, divisor);
  int64_t rest = numerator - floor * divisor;
  if (kind == ExprKind::Mod)
    return rest;
  return kind == ExprKind::CeilDiv && rest != 0 ? floor + 1 : floor;
}

ExprAttr ExprAttr::getDivision(ExprKind kind, ExprAttr lhs, ExprAttr rhs) {
  MLIRContext *ctx = lhs.getContext();
  if (!rhs.isConstant() || rhs.getValue() <= 0)
    return getUniqued(ctx, kind, 0, {lhs, rhs});
  int64_t divisor = rhs.getValue();
  if (lhs.isConstant())
    return getConstant(ctx, divide(kind, lhs.getValue(), divisor));
  if (divisor == 1)
    return kind == ExprKind::Mod ? getConstant(ctx, 0) : lhs;

  // (divisor * q + r) op divisor is q + r op divisor, or r mod divisor.
  SmallVector<ExprAttr> terms, quotients, rest;
  flatten(ExprKind::Sum, lhs, terms);
  for (ExprAttr term : terms) {
    auto [monomial, coefficient] = splitCoefficient(term);
    int64_t quotient = floorDivide(coefficient, divisor);
    int64_t remainder = coefficient - quotient * divisor;
    if (!monomial) {
      if (quotient != 0)
        quotients.push_back(getConstant(ctx, quotient));
      if (remainder != 0)
        rest.push_back(getConstant(ctx, remainder));
    } else if (remainder == 0) {
      quotients.push_back(
          getProduct(ctx, {monomial, getConstant(ctx, quotient)}));
    } else {
      rest.push_back(term);
    }
  }
  if (!quotients.empty()) {
    ExprAttr remaining = getDivision(kind, getSum(ctx, rest), rhs);
    if (kind == ExprKind::Mod)
      return remaining;
    quotients.push_back(remaining);
    return getSum(ctx, quotients);
  }

  // Divisions by constants in a row.
  if (lhs.getKind() == kind && lhs.getOperands()[1].isConstant() &&
      lhs.getOperands()[1].getValue() > 0) {
    int64_t inner = lhs.getOperands()[1].getValue();
    if (kind == ExprKind::Mod) {
      if (inner % divisor == 0)
        return getDivision(kind, lhs.getOperands()[0], rhs);
      if (divisor % inner == 0)
        return lhs;
    } else if (fitsInt64(Wide(inner) * divisor)) {
      return getDivision(kind, lhs.getOperands()[0],
                         getConstant(ctx, inner * divisor));
    }
  }
  return getUniqued(ctx, kind, 0, {lhs, rhs});
}

ExprAttr ExprAttr::getFloorDiv(ExprAttr lhs, ExprAttr rhs) {
  return getDivision(ExprKind::FloorDiv, lhs, rhs);
}
ExprAttr ExprAttr::getCeilDiv(ExprAttr lhs, ExprAttr rhs) {
  return getDivision(ExprKind::CeilDiv, lhs, rhs);
}
ExprAttr ExprAttr::getMod(ExprAttr lhs, ExprAttr rhs) {
  return getDivision(ExprKind::Mod, lhs, rhs);
}

ExprAttr ExprAttr::getExtremum(MLIRContext *ctx, ExprKind kind,
                               ArrayRef<ExprAttr> operands) {
  assert(!operands.empty() && "a minimum or maximum needs an operand");
  SmallVector<ExprAttr> flat, unique;
  flatten(kind, operands, flat);
  llvm::SmallDenseSet<ExprAttr> seen;
  std::optional<int64_t> constant;
  for (ExprAttr operand : flat) {
    if (operand.isConstant()) {
      int64_t value = operand.getValue();
      constant = !constant               ? value
                 : kind == ExprKind::Min ? std::min(*constant, value)
                                         : std::max(*constant, value);
    } else if (seen.insert(operand).second) {
      unique.push_back(operand);
    }
  }
  if (constant)
    unique.push_back(getConstant(ctx, *constant));
  if (unique.size() == 1)
    return unique.front();
  return getSorted(ctx, kind, unique);
}

ExprAttr ExprAttr::getMin(MLIRContext *ctx, ArrayRef<ExprAttr> operands) {
  return getExtremum(ctx, ExprKind::Min, operands);
}
ExprAttr ExprAttr::getMax(MLIRContext *ctx, ArrayRef<ExprAttr> operands) {
  return getExtremum(ctx, ExprKind::Max, operands);
}

ExprAttr ExprAttr::getFromAffineExpr(AffineExpr expr, ArrayRef<ExprAttr> dims,
                                     ArrayRef<ExprAttr> symbols) {
  MLIRContext *ctx = expr.getContext();
  switch (expr.getKind()) {
  case AffineExprKind::Constant:
    return getConstant(ctx, cast<AffineConstantExpr>(expr).getValue());
  case AffineExprKind::DimId: {
    unsigned position = cast<AffineDimExpr>(expr).getPosition();
    return position < dims.size() ? dims[position] : ExprAttr();
  }
  case AffineExprKind::SymbolId: {
    unsigned position = cast<AffineSymbolExpr>(expr).getPosition();
    return position < symbols.size() ? symbols[position] : ExprAttr();
  }
  default:
    break;
  }
  auto binary = cast<AffineBinaryOpExpr>(expr);
  ExprAttr lhs = getFromAffineExpr(binary.getLHS(), dims, symbols);
  ExprAttr rhs = getFromAffineExpr(binary.getRHS(), dims, symbols);
  if (!lhs || !rhs)
    return {};
  switch (expr.getKind()) {
  case AffineExprKind::Add:
    return getSum(ctx, {lhs, rhs});
  case AffineExprKind::Mul:
    return getProduct(ctx, {lhs, rhs});
  case AffineExprKind::FloorDiv:
    return getFloorDiv(lhs, rhs);
  case AffineExprKind::CeilDiv:
    return getCeilDiv(lhs, rhs);
  case AffineExprKind::Mod:
    return getMod(lhs, rhs);
  default:
    llvm_unreachable("leaves were handled above");
  }
}

//===----------------------------------------------------------------------===//
// Queries
//===----------------------------------------------------------------------===//

void ExprAttr::walkSymbols(llvm::function_ref<void(unsigned)> fn) const {
  if (isSymbol())
    fn(getValue());
  for (ExprAttr operand : getOperands())
    operand.walkSymbols(fn);
}

unsigned ExprAttr::getNumSymbols() const {
  unsigned count = 0;
  walkSymbols([&](unsigned index) { count = std::max(count, index + 1); });
  return count;
}

std::optional<int64_t> ExprAttr::evaluate(ArrayRef<int64_t> symbols) const {
  if (isConstant())
    return getValue();
  if (isSymbol()) {
    if (static_cast<uint64_t>(getValue()) >= symbols.size())
      return std::nullopt;
    return symbols[getValue()];
  }
  SmallVector<int64_t> values;
  for (ExprAttr operand : getOperands()) {
    std::optional<int64_t> value = operand.evaluate(symbols);
    if (!value)
      return std::nullopt;
    values.push_back(*value);
  }
  switch (getKind()) {
  case ExprKind::Sum: {
    Wide sum = 0;
    for (int64_t value : values)
      sum += value;
    return fitsInt64(sum) ? std::optional<int64_t>(sum) : std::nullopt;
  }
  case ExprKind::Product: {
    if (llvm::is_contained(values, 0))
      return 0;
    Wide product = 1;
    for (int64_t value : values) {
      product *= value;
      // 2^63 may still become -2^63.
      if ((product < 0 ? -product : product) > (Wide(1) << 63))
        return std::nullopt;
    }
    return fitsInt64(product) ? std::optional<int64_t>(product) : std::nullopt;
  }
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
    if (values[1] <= 0)
      return std::nullopt;
    return divide(getKind(), values[0], values[1]);
  case ExprKind::Min:
    return *llvm::min_element(values);
  case ExprKind::Max:
    return *llvm::max_element(values);
  case ExprKind::Constant:
  case ExprKind::Symbol:
    break;
  }
  llvm_unreachable("leaves were handled above");
}

ExprAttr ExprAttr::replaceSymbols(ArrayRef<ExprAttr> replacements) const {
  if (isConstant())
    return *this;
  if (isSymbol())
    return static_cast<uint64_t>(getValue()) < replacements.size()
               ? replacements[getValue()]
               : ExprAttr();
  SmallVector<ExprAttr> operands;
  for (ExprAttr operand : getOperands()) {
    operands.push_back(operand.replaceSymbols(replacements));
    if (!operands.back())
      return {};
  }
  return getCanonical(getContext(), getKind(), 0, operands);
}

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

namespace {
/// Recursive descent over the grammar in the attribute's description.
class ExprParser {
public:
  explicit ExprParser(AsmParser &parser)
      : parser(parser), ctx(parser.getContext()) {}

  FailureOr<ExprAttr> parseSum() {
    if (++depth > kMaxNesting)
      return parser.emitError(parser.getCurrentLocation())
             << "expression is nested more than " << kMaxNesting << " deep";
    SmallVector<ExprAttr> terms;
    FailureOr<ExprAttr> term = parseTerm();
    if (failed(term))
      return failure();
    terms.push_back(*term);
    while (true) {
      bool plus = succeeded(parser.parseOptionalPlus());
      bool minus = !plus && succeeded(parser.parseOptionalMinus());
      if (!plus && !minus)
        break;
      if (failed(term = parseTerm()))
        return failure();
      terms.push_back(plus ? *term
                           : ExprAttr::getProduct(
                                 ctx, {*term, ExprAttr::getConstant(ctx, -1)}));
    }
    --depth;
    return ExprAttr::getSum(ctx, terms);
  }

private:
  FailureOr<ExprAttr> parseTerm() {
    FailureOr<ExprAttr> lhs = parseFactor();
    if (failed(lhs))
      return failure();
    // Factors of one product are collected: which constants fold must not
    // depend on the order in which they are written.
    SmallVector<ExprAttr> factors{*lhs};
    while (true) {
      StringRef keyword;
      if (succeeded(parser.parseOptionalStar())) {
        FailureOr<ExprAttr> rhs = parseFactor();
        if (failed(rhs))
          return failure();
        factors.push_back(*rhs);
      } else if (succeeded(parser.parseOptionalKeyword(
                     &keyword, {"floordiv", "ceildiv", "mod"}))) {
        FailureOr<ExprAttr> rhs = parseFactor();
        if (failed(rhs))
          return failure();
        ExprAttr numerator = ExprAttr::getProduct(ctx, factors);
        factors.assign(
            {keyword == "floordiv"  ? ExprAttr::getFloorDiv(numerator, *rhs)
             : keyword == "ceildiv" ? ExprAttr::getCeilDiv(numerator, *rhs)
                                    : ExprAttr::getMod(numerator, *rhs)});
      } else {
        return ExprAttr::getProduct(ctx, factors);
      }
    }
  }

  FailureOr<ExprAttr> parseFactor() {
    SMLoc loc = parser.getCurrentLocation();
    if (succeeded(parser.parseOptionalLParen())) {
      FailureOr<ExprAttr> inner = parseSum();
      if (failed(inner) || failed(parser.parseRParen()))
        return failure();
      return inner;
    }
    int64_t value = 0;
    OptionalParseResult integer = parser.parseOptionalInteger(value);
    if (integer.has_value()) {
      if (failed(*integer))
        return failure();
      return ExprAttr::getConstant(ctx, value);
    }
    StringRef keyword;
    if (failed(parser.parseOptionalKeyword(&keyword)))
      return parser.emitError(loc)
             << "expected an integer, a symbol 's<N>', 'min', 'max' or '('";
    if (keyword == "min" || keyword == "max") {
      SmallVector<ExprAttr> operands;
      if (failed(parser.parseCommaSeparatedList(
              AsmParser::Delimiter::Paren, [&]() -> ParseResult {
                FailureOr<ExprAttr> operand = parseSum();
                if (failed(operand))
                  return failure();
                operands.push_back(*operand);
                return success();
              })))
        return failure();
      if (operands.empty())
        return parser.emitError(loc)
               << "'" << keyword << "' needs at least one operand";
      return keyword == "min" ? ExprAttr::getMin(ctx, operands)
                              : ExprAttr::getMax(ctx, operands);
    }
    StringRef digits = keyword;
    unsigned index;
    if (!digits.consume_front("s") || digits.getAsInteger(10, index))
      return parser.emitError(loc)
             << "expected a symbol 's<N>', got '" << keyword << "'";
    return ExprAttr::getSymbol(ctx, index);
  }

  AsmParser &parser;
  MLIRContext *ctx;
  unsigned depth = 0;
};
} // namespace

FailureOr<ExprAttr> ExprAttr::parseBody(AsmParser &parser) {
  return ExprParser(parser).parseSum();
}

Attribute ExprAttr::parse(AsmParser &parser, Type) {
  if (failed(parser.parseLess()))
    return {};
  FailureOr<ExprAttr> expr = parseBody(parser);
  if (failed(expr) || failed(parser.parseGreater()))
    return {};
  return *expr;
}

void ExprAttr::print(AsmPrinter &printer) const {
  printer << '<';
  printBody(printer.getStream());
  printer << '>';
}

/// Prints an operand of a product or division; whatever binds no tighter goes
/// into parentheses.
static void printOperand(raw_ostream &os, ExprAttr operand) {
  switch (operand.getKind()) {
  case ExprKind::Constant:
  case ExprKind::Symbol:
  case ExprKind::Min:
  case ExprKind::Max:
    operand.printBody(os);
    return;
  default:
    os << '(';
    operand.printBody(os);
    os << ')';
  }
}

static void printProduct(raw_ostream &os, ArrayRef<ExprAttr> factors) {
  llvm::interleave(
      factors, [&](ExprAttr factor) { printOperand(os, factor); },
      [&] { os << " * "; });
}

void ExprAttr::printBody(raw_ostream &os) const {
  ArrayRef<ExprAttr> operands = getOperands();
  switch (getKind()) {
  case ExprKind::Constant:
    os << getValue();
    return;
  case ExprKind::Symbol:
    os << 's' << getValue();
    return;
  case ExprKind::Product:
    printProduct(os, operands);
    return;
  case ExprKind::FloorDiv:
  case ExprKind::CeilDiv:
  case ExprKind::Mod:
    printOperand(os, operands[0]);
    os << (getKind() == ExprKind::FloorDiv  ? " floordiv "
           : getKind() == ExprKind::CeilDiv ? " ceildiv "
                                            : " mod ");
    printOperand(os, operands[1]);
    return;
  case ExprKind::Min:
  case ExprKind::Max:
    os << (getKind() == ExprKind::Min ? "min(" : "max(");
    llvm::interleaveComma(operands, os,
                          [&](ExprAttr operand) { operand.printBody(os); });
    os << ')';
    return;
  case ExprKind::Sum:
    break;
  }
  operands.front().printBody(os);
  for (ExprAttr term : operands.drop_front()) {
    auto [monomial, coefficient] = splitCoefficient(term);
    if (coefficient >= 0 ||
        coefficient == std::numeric_limits<int64_t>::min()) {
      os << " + ";
      term.printBody(os);
      continue;
    }
    os << " - ";
    if (!monomial) {
      os << -coefficient;
      continue;
    }
    ArrayRef<ExprAttr> factors = term.getOperands().drop_back();
    printProduct(os, factors);
    if (coefficient != -1)
      os << " * " << -coefficient;
  }
}

raw_ostream &mlir::pgkp::operator<<(raw_ostream &os, ExprAttr expr) {
  expr.printBody(os);
  return os;
}
