// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===- PGKPAttrs.td - Attributes of the pgkp dialect -------*- tablegen -*-===//

#ifndef PGKP_DIALECT_IR_PGKPATTRS_TD
#define PGKP_DIALECT_IR_PGKPATTRS_TD

include "pgkp/Dialect/IR/PGKPBase.td"
include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/EnumAttr.td"

class PGKP_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<PGKP_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

def PGKP_Stage : I32EnumAttr<"Stage", "stage of preparing a kernel variant", [
    I32EnumAttrCase<"Generate", 0, "generate">,
    I32EnumAttrCase<"Compile", 1, "compile">,
    I32EnumAttrCase<"Load", 2, "load">,
    I32EnumAttrCase<"Tune", 3, "tune">,
    I32EnumAttrCase<"Configure", 4, "configure">]> {
  let cppNamespace = "::mlir::pgkp";
  let genSpecializedAttr = 0;
}
def PGKP_StageAttr : EnumAttr<PGKP_Dialect, PGKP_Stage, "stage"> {
  let description = [{
    The stage up to which a variant is prepared, in order: `generate` code,
    `compile` it, `load` the image, `tune` its configuration, `configure` the
    launch. Each uses different resources and is priced apart.

    Example: `#pgkp.stage<load>`
  }];
  let assemblyFormat = "`<` $value `>`";
}

def PGKP_Provenance
    : I32EnumAttr<"Provenance", "where a forecast comes from", [
    I32EnumAttrCase<"Structure", 0, "structure">,
    I32EnumAttrCase<"Profile", 1, "profile">,
    I32EnumAttrCase<"Announcement", 2, "announcement">,
    I32EnumAttrCase<"History", 3, "history">,
    I32EnumAttrCase<"User", 4, "user">]> {
  let cppNamespace = "::mlir::pgkp";
  let genSpecializedAttr = 0;
}
def PGKP_ProvenanceAttr
    : EnumAttr<PGKP_Dialect, PGKP_Provenance, "provenance"> {
  let description = [{
    What a class or a prepare rests on: the `structure` of the program, the
    `profile` of an earlier run, an `announcement` of a coming request, the
    `history` of this process, or the `user`.

    Example: `#pgkp.provenance<profile>`
  }];
  let assemblyFormat = "`<` $value `>`";
}

//===----------------------------------------------------------------------===//
// Expressions
//===----------------------------------------------------------------------===//

def PGKP_ExprAttr : PGKP_Attr<"Expr", "expr"> {
  let summary = "integer expression over symbols";
  let description = [{
    An expression over the symbols `s0`, `s1`, ... (positions in a list of
    symbols that the holder of the attribute defines: the roots of an entry, or
    the extents of a kernel) and 64-bit constants.

    ```
    expr   ::= term (('+' | '-') term)*
    term   ::= factor (('*' | 'floordiv' | 'ceildiv' | 'mod') factor)*
    factor ::= integer | symbol | '(' expr ')'
             | ('min' | 'max') '(' expr (',' expr)* ')'
    ```

    Expressions are uniqued and canonical: constants are folded, sums and
    products are flattened and sorted with the constant last, equal terms of a
    sum are joined, products are expanded over sums of up to 32 resulting terms,
    and multiples of a constant divisor leave the division. Two expressions that
    are equal by these rules are the same attribute.

    A division or remainder has a value only for a positive divisor. An
    expression without a value (such a division, or a result outside 64 bits)
    is legal; evaluating it says so. Canonicalization takes subexpressions to
    have values: `(s0 floordiv s1) * 0` is `0`.

    Examples:

    ```mlir
    #pgkp.expr<s0 * s1 + 4>
    #pgkp.expr<s0 ceildiv 16>
    #pgkp.expr<min(s0, 256)>
    ```
  }];
  let parameters = (ins "::mlir::pgkp::ExprKind":$kind, "int64_t":$value,
      ArrayRefParameter<"::mlir::pgkp::ExprAttr">:$operands);
  let skipDefaultBuilders = 1;
  let builders = [
    AttrBuilder<(ins "::mlir::pgkp::ExprKind":$kind, "int64_t":$value,
        "::llvm::ArrayRef<::mlir::pgkp::ExprAttr>":$operands), [{
      return getCanonical($_ctxt, kind, value, operands);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// Builders; each returns the canonical form.
    static ExprAttr getConstant(::mlir::MLIRContext *ctx, int64_t value);
    static ExprAttr getSymbol(::mlir::MLIRContext *ctx, unsigned index);
    static ExprAttr getSum(::mlir::MLIRContext *ctx,
                           ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getProduct(::mlir::MLIRContext *ctx,
                               ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getFloorDiv(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr getCeilDiv(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr getMod(ExprAttr lhs, ExprAttr rhs);
    static ExprAttr getMin(::mlir::MLIRContext *ctx,
                           ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getMax(::mlir::MLIRContext *ctx,
                           ::llvm::ArrayRef<ExprAttr> operands);

    /// Builds from an affine expression whose dimension and symbol `i` stand
    /// for `dims[i]` and `symbols[i]`; null if it refers past either list.
    static ExprAttr getFromAffineExpr(::mlir::AffineExpr expr,
                                      ::llvm::ArrayRef<ExprAttr> dims,
                                      ::llvm::ArrayRef<ExprAttr> symbols);

    bool isConstant() const { return getKind() == ExprKind::Constant; }
    bool isConstant(int64_t value) const {
      return isConstant() && getValue() == value;
    }
    bool isSymbol() const { return getKind() == ExprKind::Symbol; }
    /// The value, if this is a constant.
    std::optional<int64_t> getConstantValue() const {
      return isConstant() ? std::optional<int64_t>(getValue()) : std::nullopt;
    }
    /// The position, if this is a symbol.
    std::optional<unsigned> getSymbolIndex() const {
      return isSymbol() ? std::optional<unsigned>(getValue()) : std::nullopt;
    }
    /// One more than the highest symbol position in use; 0 if there is none.
    unsigned getNumSymbols() const;
    /// Calls `fn` with the position of each symbol occurrence.
    void walkSymbols(::llvm::function_ref<void(unsigned)> fn) const;

    /// The value where symbol `i` is `symbols[i]`; none where a symbol is
    /// missing, a divisor is not positive, or a result leaves 64 bits.
    std::optional<int64_t> evaluate(::llvm::ArrayRef<int64_t> symbols) const;
    /// Replaces symbol `i` by `replacements[i]`; null if one is missing.
    ExprAttr replaceSymbols(::llvm::ArrayRef<ExprAttr> replacements) const;

    /// Parse and print without the angle brackets.
    static ::mlir::FailureOr<ExprAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::llvm::raw_ostream &os) const;

  private:
    static ExprAttr getCanonical(::mlir::MLIRContext *ctx, ExprKind kind,
                                 int64_t value,
                                 ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getUniqued(::mlir::MLIRContext *ctx, ExprKind kind,
                               int64_t value,
                               ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getSorted(::mlir::MLIRContext *ctx, ExprKind kind,
                              ::llvm::ArrayRef<ExprAttr> operands);
    static ExprAttr getDivision(ExprKind kind, ExprAttr lhs, ExprAttr rhs);
    static ExprAttr getExtremum(::mlir::MLIRContext *ctx, ExprKind kind,
                                ::llvm::ArrayRef<ExprAttr> operands);

  public:
  }];
}

//===----------------------------------------------------------------------===//
// Facts and classes
//===----------------------------------------------------------------------===//

def PGKP_FactAttr : PGKP_Attr<"Fact", "fact"> {
  let summary = "statement about one extent of a kernel";
  let description = [{
    One of three statements about the extent at position `N` of a kernel's
    extents vector, written `dN` whatever the symbol's name is. Bounds are
    inclusive. `in [v, v]` is `== v`.

    Examples:

    ```mlir
    #pgkp.fact<d0 == 1>
    #pgkp.fact<d1 mod 16 == 0>
    #pgkp.fact<d0 in [2, 63]>
    ```
  }];
  let parameters = (ins "::mlir::pgkp::FactKind":$kind, "unsigned":$dim,
      "int64_t":$lo, "int64_t":$hi);
  let skipDefaultBuilders = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::mlir::pgkp::FactKind":$kind, "unsigned":$dim,
        "int64_t":$lo, "int64_t":$hi), [{
      if (kind != FactKind::Range)
        hi = lo;
      else if (lo == hi)
        kind = FactKind::Equal;
      return $_get($_ctxt, kind, dim, lo, hi);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// `d == value`, `d mod divisor == 0` and `lo <= d <= hi`.
    static FactAttr getEqual(::mlir::MLIRContext *ctx, unsigned dim,
                             int64_t value) {
      return get(ctx, FactKind::Equal, dim, value, value);
    }
    static FactAttr getDivisible(::mlir::MLIRContext *ctx, unsigned dim,
                                 int64_t divisor) {
      return get(ctx, FactKind::Divisible, dim, divisor, divisor);
    }
    static FactAttr getRange(::mlir::MLIRContext *ctx, unsigned dim, int64_t lo,
                             int64_t hi) {
      return get(ctx, FactKind::Range, dim, lo, hi);
    }

    /// The value of an equality, or the divisor of a divisibility.
    int64_t getValue() const { return getLo(); }
    /// Whether the fact holds for one extent.
    bool holdsFor(int64_t extent) const;
    /// Whether it holds for an extents vector; false past its end.
    bool holds(::llvm::ArrayRef<int64_t> extents) const {
      return getDim() < extents.size() && holdsFor(extents[getDim()]);
    }

    /// Parse and print without the angle brackets.
    static ::mlir::FailureOr<FactAttr> parseBody(::mlir::AsmParser &parser);
    void printBody(::llvm::raw_ostream &os) const;
  }];
}

def PGKP_ClassAttr : PGKP_Attr<"Class", "class"> {
  let summary = "conjunction of facts with its probability";
  let description = [{
    A class of extents vectors for which a kernel may be specialized: those for
    which every fact holds. The *generic* class has no facts. `probability` is
    the share of the kernel's dispatches that fall into the class.

    Facts are canonical: joined per extent (an equality absorbs the others,
    divisors join to their least common multiple, ranges intersect) and sorted.
    Facts that exclude each other are an error.

    Examples:

    ```mlir
    #pgkp.class<[] probability 1.000000e+00 provenance structure>
    #pgkp.class<[d0 == 1, d1 mod 16 == 0] probability 7.500000e-01 provenance profile>
    ```
  }];
  let parameters = (ins ArrayRefParameter<"::mlir::pgkp::FactAttr">:$facts,
      "::mlir::FloatAttr":$probabilityAttr,
      "::mlir::pgkp::Provenance":$provenance);
  let skipDefaultBuilders = 1;
  let genVerifyDecl = 1;
  let builders = [
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::pgkp::FactAttr>":$facts,
        "::mlir::FloatAttr":$probabilityAttr,
        "::mlir::pgkp::Provenance":$provenance), [{
      return $_get($_ctxt, canonicalizeFacts(facts), probabilityAttr,
                   provenance);
    }]>,
    AttrBuilder<(ins "::llvm::ArrayRef<::mlir::pgkp::FactAttr>":$facts,
        "double":$probability, "::mlir::pgkp::Provenance":$provenance), [{
      return $_get($_ctxt, canonicalizeFacts(facts),
                   FloatAttr::get(Float64Type::get($_ctxt), probability),
                   provenance);
    }]>
  ];
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    double getProbability() const {
      return getProbabilityAttr().getValueAsDouble();
    }
    bool isGeneric() const { return getFacts().empty(); }
    /// Whether every fact holds for the extents vector.
    bool matches(::llvm::ArrayRef<int64_t> extents) const;
  }];
}

//===----------------------------------------------------------------------===//
// Configurations and costs
//===----------------------------------------------------------------------===//

def PGKP_ConfigAttr : PGKP_Attr<"Config", "config"> {
  let summary = "one point of a kernel's configuration space";
  let description = [{
    What tuning chooses: tile sizes, warps, stages, vector width, the name of a
    script. A dictionary whose values are integers, floats, booleans, strings or
    arrays of 64-bit integers; the code generators define the names.

    Example:

    ```mlir
    #pgkp.config<{script = "packed", mr = 6, tiles = array<i64: 6, 16>}>
    ```
  }];
  let parameters = (ins "::mlir::DictionaryAttr":$values);
  let assemblyFormat = "`<` $values `>`";
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    /// The integer or string under `name`, if there is one of that type.
    std::optional<int64_t> getInt(::llvm::StringRef name) const;
    std::optional<::llvm::StringRef> getString(::llvm::StringRef name) const;
  }];
}

def PGKP_CostAttr : PGKP_Attr<"Cost", "cost"> {
  let summary = "operations and bytes of one dispatch";
  let description = [{
    Cost features of a kernel as expressions over its extents: floating-point
    operations, and bytes of arguments read and written.

    Example, for `dims(m)` and a product with a 64 x 128 matrix of f32:

    ```mlir
    #pgkp.cost<flops = s0 * 16384, bytes = s0 * 768 + 32768>
    ```
  }];
  let parameters = (ins "::mlir::pgkp::ExprAttr":$flops,
      "::mlir::pgkp::ExprAttr":$bytes);
  let hasCustomAssemblyFormat = 1;
}

#endif // PGKP_DIALECT_IR_PGKPATTRS_TD
