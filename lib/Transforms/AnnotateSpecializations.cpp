// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
/// \file
/// Chooses the classes for which kernels may be specialized.
///
/// What pays is known from measurements on the host and the GPU: for a matrix
/// product the number of rows decides which kind of code is best (one row, few,
/// many); an innermost extent that fills vectors needs no tails; a number of
/// batches or of rows of a row kernel changes little. So each symbol gets a
/// few facts by the place where it is bound, and classes are their products.
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Remarks.h"
#include "pgkp/Analysis/KernelContent.h"
#include "pgkp/Analysis/KernelCost.h"
#include "pgkp/Analysis/RootAnalysis.h"
#include "pgkp/Codegen/Families.h"
#include "pgkp/Transforms/Passes.h"
#include "schema/Envelope.h"
#include "schema/profile_generated.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::pgkp {
#define GEN_PASS_DEF_ANNOTATESPECIALIZATIONSPASS
#include "pgkp/Transforms/Passes.h.inc"
} // namespace mlir::pgkp

using namespace mlir;
using namespace mlir::pgkp;
namespace schema = ::pgkp::schema;

namespace {

/// Products with fewer rows than this are "skinny" (blocked differently).
constexpr int64_t kFewRows = 64;
/// Priors for classes that no profile has seen. An arbitrary extent is a
/// multiple of k with probability 1/k; decoding makes single rows common.
constexpr double kSingleProbability = 0.25;
constexpr double kFewProbability = 0.4;

/// One fact that a symbol may have, with its prior; fact null: none.
struct Choice {
  FactAttr fact;
  double probability;
};

enum class Role {
  Vector, // bound to an innermost dimension
  Rows,   // rows of a product
  Leading // any other
};

SmallVector<Role> getRoles(KernelOp kernel, Family family) {
  SmallVector<Role> roles(kernel.getNumDims(), Role::Leading);
  bool isProduct = family == Family::matmul || family == Family::batch_matmul;
  size_t maxRank = 0;
  for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i)
    maxRank = std::max(maxRank, kernel.getArgumentExtents(i).size());
  for (unsigned i = 0; i < kernel.getArgumentTypes().size(); ++i) {
    SmallVector<ExprAttr> shape = kernel.getArgumentExtents(i);
    // One value per row: its only dimension is not innermost to the kernel.
    if (shape.size() == 1 && maxRank > 1)
      continue;
    bool isOutput = i >= kernel.getNumInputs();
    for (auto [dim, extent] : llvm::enumerate(shape)) {
      std::optional<unsigned> symbol = extent.getSymbolIndex();
      if (!symbol)
        continue;
      if (dim + 1 == shape.size())
        roles[*symbol] = Role::Vector;
      else if (isProduct && isOutput && dim + 2 == shape.size() &&
               roles[*symbol] == Role::Leading)
        roles[*symbol] = Role::Rows;
    }
  }
  return roles;
}

/// The constant that divides the symbol in every dispatch: 4 for `4 * seq`.
SmallVector<int64_t> getUnits(KernelOp kernel, ArrayRef<ArrayAttr> sites) {
  SmallVector<int64_t> units(kernel.getNumDims(), 0);
  for (ArrayAttr site : sites)
    for (auto [i, attr] : llvm::enumerate(site)) {
      if (i >= units.size())
        continue;
      auto expr = dyn_cast<ExprAttr>(attr);
      int64_t unit = 1;
      if (expr && expr.getKind() == ExprKind::Product)
        if (auto constant = expr.getOperands().back().getConstantValue())
          unit = std::max<int64_t>(1, *constant);
      units[i] = units[i] == 0 || units[i] == unit ? unit : 1;
    }
  for (int64_t &unit : units)
    unit = std::max<int64_t>(1, unit);
  return units;
}

struct AnnotateSpecializationsPass
    : public mlir::pgkp::impl::AnnotateSpecializationsPassBase<
          AnnotateSpecializationsPass> {
  using Base::Base;

  void runOnOperation() override;

private:
  LogicalResult checkOptions();
  LogicalResult readProfile();
  SmallVector<ClassAttr> getLattice(KernelOp kernel, Family family,
                                    ArrayRef<ArrayAttr> sites);
  SmallVector<ClassAttr> getProfiled(KernelOp kernel);
  void annotate(KernelOp kernel, ArrayRef<ArrayAttr> sites);

  std::shared_ptr<schema::ProfileT> history; // passes are copied
};

LogicalResult AnnotateSpecializationsPass::checkOptions() {
  ModuleOp module = getOperation();
  if (maxClasses < 1 || maxClasses > 64)
    return module.emitError("option 'max-classes' is ")
           << maxClasses.getValue() << "; expected 1 to 64";
  if (divisor < 2)
    return module.emitError("option 'divisor' is ")
           << divisor.getValue() << "; expected at least 2";
  return success();
}

LogicalResult AnnotateSpecializationsPass::readProfile() {
  history.reset();
  if (profile.empty())
    return success();
  ModuleOp module = getOperation();
  auto bytes = ::pgkp::rt::readSealed(::pgkp::rt::FileKind::profile, profile);
  if (!bytes)
    return module.emitError("cannot read profile: ") << bytes.error().message;
  flatbuffers::Verifier verifier(bytes->data(), bytes->size());
  if (!schema::VerifyProfileBuffer(verifier))
    return module.emitError("profile '")
           << profile << "' is damaged; expected a PGKF buffer";
  history = std::make_shared<schema::ProfileT>();
  schema::GetProfile(bytes->data())->UnPackTo(history.get());
  return success();
}

SmallVector<ClassAttr>
AnnotateSpecializationsPass::getLattice(KernelOp kernel, Family family,
                                        ArrayRef<ArrayAttr> sites) {
  MLIRContext *context = &getContext();
  SmallVector<Role> roles = getRoles(kernel, family);
  SmallVector<int64_t> units = getUnits(kernel, sites);
  double multiple = 1.0 / divisor;

  // Per symbol, from specific to general; "no fact" last.
  bool isProduct = family == Family::matmul || family == Family::batch_matmul;
  SmallVector<SmallVector<Choice>> options;
  for (unsigned i = 0; i < kernel.getNumDims(); ++i) {
    SmallVector<Choice> choices;
    double rest = 1.0;
    bool isRows = roles[i] == Role::Rows;
    if (isRows || (!isProduct && i == 0 && roles[i] == Role::Leading)) {
      choices.push_back(
          {FactAttr::getEqual(context, i, units[i]), kSingleProbability});
      rest -= kSingleProbability;
    }
    if (isRows && units[i] + 1 < kFewRows) {
      choices.push_back(
          {FactAttr::getRange(context, i, units[i] + 1, kFewRows - 1),
           kFewProbability});
      rest -= kFewProbability;
    }
    if (!choices.empty() || roles[i] == Role::Vector) {
      // A unit that divides evenly makes the fact say nothing new.
      if (units[i] % divisor != 0) {
        choices.push_back(
            {FactAttr::getDivisible(context, i, divisor), rest * multiple});
        rest *= 1.0 - multiple;
      }
    }
    choices.push_back({FactAttr(), rest});
    options.push_back(std::move(choices));
  }

  // All products, in the order of the last symbol varying fastest.
  struct Candidate {
    SmallVector<FactAttr> facts;
    double probability = 1.0;
  };
  SmallVector<Candidate> candidates = {Candidate()};
  for (ArrayRef<Choice> choices : options) {
    SmallVector<Candidate> next;
    for (const Candidate &candidate : candidates)
      for (const Choice &choice : choices) {
        next.push_back(candidate);
        if (choice.fact)
          next.back().facts.push_back(choice.fact);
        next.back().probability *= choice.probability;
      }
    candidates = std::move(next);
    // Only the likeliest can survive; this bounds the work for many symbols.
    if (candidates.size() > 4096) {
      llvm::stable_sort(candidates, [](const auto &a, const auto &b) {
        return a.probability > b.probability;
      });
      candidates.resize(4096);
    }
  }
  llvm::erase_if(candidates,
                 [](const Candidate &c) { return c.facts.empty(); });
  llvm::stable_sort(candidates, [](const auto &a, const auto &b) {
    return a.probability > b.probability;
  });
  if (candidates.size() > maxClasses)
    candidates.resize(maxClasses);

  SmallVector<ClassAttr> classes;
  for (const Candidate &candidate : candidates)
    classes.push_back(ClassAttr::get(context, candidate.facts,
                                     candidate.probability,
                                     Provenance::Structure));
  return classes;
}

/// Classes that earlier runs used, with the share of runs that did.
SmallVector<ClassAttr>
AnnotateSpecializationsPass::getProfiled(KernelOp kernel) {
  SmallVector<ClassAttr> classes;
  if (!history)
    return classes;
  MLIRContext *context = &getContext();
  KernelContent content = getKernelContent(kernel);
  for (const auto &key : history->keys) {
    if (!key->kernel_hash || key->facts.empty() ||
        !llvm::equal(*key->kernel_hash->bytes(), content.hash))
      continue;
    SmallVector<FactAttr> facts;
    bool valid = true;
    for (const schema::Fact &fact : key->facts) {
      valid &= fact.dim() < kernel.getNumDims();
      switch (fact.kind()) {
      case schema::FactKind::eq:
        facts.push_back(FactAttr::getEqual(context, fact.dim(), fact.a()));
        break;
      case schema::FactKind::divisible:
        valid &= fact.a() > 0;
        if (valid)
          facts.push_back(
              FactAttr::getDivisible(context, fact.dim(), fact.a()));
        break;
      case schema::FactKind::range:
        valid &= fact.a() <= fact.b();
        if (valid)
          facts.push_back(
              FactAttr::getRange(context, fact.dim(), fact.a(), fact.b()));
        break;
      }
    }
    if (!valid) {
      remark::missed(
          kernel.getLoc(),
          remark::RemarkOpts::name("profile").category(kRemarkCategory))
          << remark::add("profile has a fact that does not fit kernel '{0}'",
                         kernel.getSymName().str());
      continue;
    }
    // Laplace's rule: runs that used the key among runs that were seen.
    double probability = std::min(
        1.0, (key->runs_used + 1.0) / (std::max(history->runs, 0.0) + 2.0));
    classes.push_back(
        ClassAttr::get(context, facts, probability, Provenance::Profile));
  }
  return classes;
}

/// A rank by which narrower classes come first: more facts, then equalities
/// before ranges before multiples.
std::pair<size_t, int> getSpecificity(ClassAttr klass) {
  int weight = 0;
  for (FactAttr fact : klass.getFacts())
    weight += fact.getKind() == FactKind::Equal   ? 3
              : fact.getKind() == FactKind::Range ? 2
                                                  : 1;
  return {klass.getFacts().size(), weight};
}

void AnnotateSpecializationsPass::annotate(KernelOp kernel,
                                           ArrayRef<ArrayAttr> sites) {
  MLIRContext *context = &getContext();
  Builder builder(context);
  Family family = getFamily(kernel);
  if (!kernel.getFamilyAttr())
    kernel.setFamilyAttr(builder.getStringAttr(stringifyFamily(family)));
  if (!kernel.getConfigSpaceAttr())
    kernel.setConfigSpaceAttr(getConfigSpace(kernel));
  if (!kernel.getCostAttr())
    if (CostAttr cost = computeCost(kernel))
      kernel.setCostAttr(cost);
  if (kernel.getClassesAttr() || kernel.getNumDims() == 0)
    return;

  SmallVector<ClassAttr> profiled = getProfiled(kernel);
  SmallVector<ClassAttr> lattice = getLattice(kernel, family, sites);
  // What a profile has seen stays; the lattice fills up.
  llvm::MapVector<Attribute, ClassAttr> chosen;
  auto getFacts = [&](ClassAttr klass) -> Attribute {
    return builder.getArrayAttr(SmallVector<Attribute>(klass.getFacts().begin(),
                                                       klass.getFacts().end()));
  };
  llvm::stable_sort(profiled, [](ClassAttr a, ClassAttr b) {
    return a.getProbability() > b.getProbability();
  });
  for (ArrayRef<ClassAttr> source : {ArrayRef(profiled), ArrayRef(lattice)})
    for (ClassAttr klass : source)
      if (chosen.size() < maxClasses)
        chosen.insert({getFacts(klass), klass});

  SmallVector<ClassAttr> classes;
  for (auto &[facts, klass] : chosen)
    classes.push_back(klass);
  // Ties are broken by text, so that the order does not depend on the profile.
  auto print = [](ClassAttr klass) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    for (FactAttr fact : klass.getFacts())
      fact.printBody(stream << " ");
    return text;
  };
  llvm::stable_sort(classes, [&](ClassAttr a, ClassAttr b) {
    auto left = getSpecificity(a), right = getSpecificity(b);
    return left != right ? left > right : print(a) < print(b);
  });
  kernel.setClassesAttr(builder.getArrayAttr(
      SmallVector<Attribute>(classes.begin(), classes.end())));
  remark::passed(kernel.getLoc(),
                 remark::RemarkOpts::name("classes").category(kRemarkCategory))
      << remark::add("kernel '{0}' of family '{1}': {2} classes, {3} from the "
                     "profile",
                     kernel.getSymName().str(), stringifyFamily(family).str(),
                     classes.size(),
                     llvm::count_if(classes, [](ClassAttr klass) {
                       return klass.getProvenance() == Provenance::Profile;
                     }));
}

void AnnotateSpecializationsPass::runOnOperation() {
  if (failed(checkOptions()) || failed(readProfile()))
    return signalPassFailure();
  ModuleOp module = getOperation();
  llvm::MapVector<StringAttr, SmallVector<ArrayAttr>> sites;
  module.walk([&](PreparableOpInterface op) {
    if (auto exprs = op->getAttrOfType<ArrayAttr>(kExtentExprsAttr))
      sites[op.getKernelRef().getLeafReference()].push_back(exprs);
  });
  for (KernelOp kernel : module.getOps<KernelOp>())
    if (!kernel.isExternal())
      annotate(kernel, sites.lookup(kernel.getSymNameAttr()));
}

} // namespace
