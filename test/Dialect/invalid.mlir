// RUN: pgkp-opt %s --verify-diagnostics --split-input-file

//===-- pgkp.kernel --------------------------------------------------------===//

// expected-error@+1 {{'pgkp.kernel' op must be private}}
pgkp.kernel @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op 'dims' declares 'm' twice}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m, m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op 'dims' has an empty name}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims("") args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op 'args' binds 1 arguments; expected 2}}
pgkp.kernel private @k(tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op has no results; a kernel writes at least one tensor}}
pgkp.kernel private @k(tensor<?xf32>) dims(m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op has 2 results but 1 arguments; the last arguments are the results' destinations}}
pgkp.kernel private @k(tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>) dims(m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 has type 'memref<?xf32>'; expected a ranked tensor, integer, index or float}}
pgkp.kernel private @k(memref<?xf32>, tensor<?xf32>) -> tensor<?xf32> dims(m) args([m], [m])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 of type 'tensor<?x4xf32>' binds 1 dimensions; expected 2}}
pgkp.kernel private @k(tensor<?x4xf32>) -> tensor<?x4xf32> dims(m) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 of type 'f32' binds 1 dimensions; expected 0}}
pgkp.kernel private @k(f32, tensor<?xf32>) -> tensor<?xf32> dims(m) args([m], [m])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 dimension 0 is bound to 'n', which 'dims' does not declare}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([n])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 dimension 0 is dynamic but bound to 4; expected a symbol}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([4])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 dimension 1 is static but bound to symbol 'm'; expected 4}}
pgkp.kernel private @k(tensor<?x4xf32>) -> tensor<?x4xf32> dims(m) args([m, m])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 dimension 1 is static 4 but bound to 5}}
pgkp.kernel private @k(tensor<?x4xf32>) -> tensor<?x4xf32> dims(m) args([m, 5])

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0 dimension 0 is bound to 4.000000e+00 : f32; expected a symbol or a 64-bit integer}}
"pgkp.kernel"() <{sym_name = "k", sym_visibility = "private", function_type = (tensor<4xf32>) -> tensor<4xf32>, dims = [], arg_dims = [[4.0 : f32]]}> ({}) : () -> ()

// -----

// expected-error@+1 {{'pgkp.kernel' op symbol 'n' is not bound by any argument}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m, n) args([m])

// -----

// expected-error@+1 {{'pgkp.kernel' op result #0 has type 'tensor<4xf32>' but its destination, argument #1, has type 'tensor<?xf32>'}}
pgkp.kernel private @k(tensor<4xf32>, tensor<?xf32>) -> tensor<4xf32> dims(m) args([4], [m])

// -----

// expected-error@+1 {{'pgkp.kernel' op result #0 has type 'f32'; expected a ranked tensor}}
pgkp.kernel private @k(f32) -> f32 dims() args([])

// -----

// expected-error@+1 {{'pgkp.kernel' op class #1 has a fact on d1; the kernel has 1 symbols}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {
  classes = [#pgkp.class<[d0 == 1] probability 0.5 provenance profile>, #pgkp.class<[d1 == 1] probability 0.5 provenance profile>]}

// -----

// expected-error@+1 {{'pgkp.kernel' op cost refers to s2; the kernel has 1 symbols}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {cost = #pgkp.cost<flops = s0, bytes = s2>}

// -----

// expected-error@+1 {{'family' failed to satisfy constraint: string attribute}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {family = 1}

// -----

// expected-error@+1 {{'classes' failed to satisfy constraint: array of #pgkp.class}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {classes = [1]}

// -----

// expected-error@+1 {{'dims' is part of the signature and must not be given again}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) attributes {dims = ["m"]}

// -----

// expected-error@+1 {{expected 'dims'}}
pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> args([m])

// -----

// expected-error@+1 {{empty block: expect at least a terminator}}
pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {}

// -----

// expected-error@+1 {{'pgkp.kernel' op body must end in 'pgkp.return', got 'llvm.unreachable'}}
pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {
  llvm.unreachable
}

// -----

// expected-error@+1 {{region with at most 1 blocks}}
pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {
  cf.br ^next
^next:
  pgkp.return %x : tensor<?xf32>
}

// -----

//===-- pgkp.return --------------------------------------------------------===//

pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {
  // expected-error@+1 {{'pgkp.return' op has 0 operands; kernel 'k' returns 1}}
  pgkp.return
}

// -----

pgkp.kernel private @k(%y: tensor<4xf32>, %x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([4], [m]) {
  // expected-error@+1 {{'pgkp.return' op operand #0 has type 'tensor<4xf32>'; kernel 'k' returns 'tensor<?xf32>'}}
  pgkp.return %y : tensor<4xf32>
}

// -----

func.func @f() {
  // expected-error@+1 {{'pgkp.return' op expects parent op 'pgkp.kernel'}}
  pgkp.return
}

// -----

//===-- pgkp.dispatch ------------------------------------------------------===//

func.func @f(%x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op kernel 'k' does not exist}}
  %r = pgkp.dispatch @k[%m] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

func.func private @k()
func.func @f(%x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op 'k' is a 'func.func'; expected a 'pgkp.kernel'}}
  %r = pgkp.dispatch @k[%m] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op has 2 extents; kernel 'k' has 1 symbols}}
  %r = pgkp.dispatch @k[%m, %m] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op has 1 'ins'; kernel 'k' takes 0}}
  %r = pgkp.dispatch @k[%m] ins(%x : tensor<?xf32>) outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op has 2 'outs'; kernel 'k' takes 1}}
  %r:2 = pgkp.dispatch @k[%m] outs(%x, %x : tensor<?xf32>, tensor<?xf32>) -> (tensor<?xf32>, tensor<?xf32>)
  return %r#0 : tensor<?xf32>
}

// -----

pgkp.kernel private @k(tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> dims(m) args([m], [m])
func.func @f(%i: tensor<?xi32>, %x: tensor<?xf32>, %m: index) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op operand #0 has type 'tensor<?xi32>'; kernel 'k' takes 'tensor<?xf32>'}}
  %r = pgkp.dispatch @k[%m] ins(%i : tensor<?xi32>) outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

// Never less static than the kernel.
pgkp.kernel private @k(tensor<4xf32>) -> tensor<4xf32> dims() args([4])
func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> {
  // expected-error@+1 {{'pgkp.dispatch' op operand #0 has type 'tensor<?xf32>'; kernel 'k' takes 'tensor<4xf32>'}}
  %r = pgkp.dispatch @k[] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  return %r : tensor<?xf32>
}

// -----

pgkp.kernel private @k(f32, tensor<4xf32>) -> tensor<4xf32> dims() args([], [4])
func.func @f(%s: f64, %x: memref<4xf32>) {
  // expected-error@+1 {{'pgkp.dispatch' op operand #0 has type 'f64'; kernel 'k' takes 'f32'}}
  pgkp.dispatch @k[] ins(%s : f64) outs(%x : memref<4xf32>)
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32> dims(m) args([m], [m])
func.func @f(%x: tensor<?xf32>, %y: memref<?xf32>, %m: index) {
  // expected-error@+1 {{'pgkp.dispatch' op mixes tensors and memrefs}}
  pgkp.dispatch @k[%m] ins(%x : tensor<?xf32>) outs(%y : memref<?xf32>)
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%x: memref<?xf32, strided<[2]>>, %m: index) {
  // expected-error@+1 {{'pgkp.dispatch' op operand of type 'memref<?xf32, strided<[2]>>' does not have the identity layout}}
  pgkp.dispatch @k[%m] outs(%x : memref<?xf32, strided<[2]>>)
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%x: tensor<?xf32>, %m: index) {
  // expected-error@+1 {{'pgkp.dispatch' op expected the number of tensor results (0) to be equal to the number of output tensors (1)}}
  pgkp.dispatch @k[%m] outs(%x : tensor<?xf32>)
  return
}

// -----

pgkp.kernel private @inner(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-error@+1 {{'pgkp.dispatch' op must not be nested in 'pgkp.kernel'}}
  %r = pgkp.dispatch @inner[%m] outs(%x : tensor<?xf32>) -> (tensor<?xf32>)
  pgkp.return %r : tensor<?xf32>
}

// -----

func.func @f() {
  // expected-error@+1 {{'pgkp.dispatch' op has no 'outs'}}
  "pgkp.dispatch"() <{kernel = @k, operandSegmentSizes = array<i32: 0, 0, 0>}> : () -> ()
  return
}

// -----

//===-- pgkp.prepare, pgkp.await, pgkp.observe -----------------------------===//

func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.prepare' op kernel 'k' does not exist}}
  pgkp.prepare @k[%m]
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f() {
  // expected-error@+1 {{'pgkp.prepare' op has 0 extents; kernel 'k' has 1 symbols}}
  pgkp.prepare @k[]
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.prepare' op probability is 1.500000e+00 : f64; expected a value in [0, 1]}}
  pgkp.prepare @k[%m] {probability = 1.5 : f64}
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.prepare' op probability is 0x7FF8000000000000 : f64; expected a value in [0, 1]}}
  pgkp.prepare @k[%m] {probability = 0x7FF8000000000000 : f64}
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.prepare' op slack is -1.000000e+00 : f64; expected a finite number of seconds >= 0}}
  pgkp.prepare @k[%m] {slack = -1.0 : f64}
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.prepare' op slack is 0x7FF0000000000000 : f64; expected a finite number of seconds >= 0}}
  pgkp.prepare @k[%m] {slack = 0x7FF0000000000000 : f64}
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'stage' failed to satisfy constraint: stage of preparing a kernel variant}}
  pgkp.prepare @k[%m] {stage = #pgkp.provenance<user>}
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  scf.parallel (%i) = (%c0) to (%m) step (%c1) {
    // expected-error@+1 {{'pgkp.prepare' op must not be nested in 'scf.parallel'}}
    pgkp.prepare @k[%i]
  }
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index, %p: i1) {
  scf.forall (%i) in (%m) {
    scf.if %p {
      // expected-error@+1 {{'pgkp.await' op must not be nested in 'scf.forall'}}
      pgkp.await @k[%i] {timeout_us = 1 : i64}
    }
  }
  return
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  gpu.launch blocks(%bx, %by, %bz) in (%gx = %m, %gy = %m, %gz = %m)
             threads(%tx, %ty, %tz) in (%lx = %m, %ly = %m, %lz = %m) {
    // expected-error@+1 {{'pgkp.prepare' op must not be nested in 'gpu.launch'}}
    pgkp.prepare @k[%m]
    gpu.terminator
  }
  return
}

// -----

pgkp.kernel private @k(%x: tensor<?xf32>) -> tensor<?xf32> dims(m) args([m]) {
  %c0 = arith.constant 0 : index
  %m = tensor.dim %x, %c0 : tensor<?xf32>
  // expected-error@+1 {{'pgkp.prepare' op must not be nested in 'pgkp.kernel'}}
  pgkp.prepare @k[%m]
  pgkp.return %x : tensor<?xf32>
}

// -----

pgkp.kernel private @k(tensor<?xf32>) -> tensor<?xf32> dims(m) args([m])
func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.await' op timeout_us is -1; expected a value >= 0}}
  pgkp.await @k[%m] {timeout_us = -1 : i64}
  return
}

// -----

func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.await' op kernel 'k' does not exist}}
  pgkp.await @k[%m] {timeout_us = 1 : i64}
  return
}

// -----

func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.await' op requires attribute 'timeout_us'}}
  pgkp.await @k[%m]
  return
}

// -----

func.func @f(%m: index) {
  // expected-error@+1 {{'pgkp.observe' op entry 'g' does not exist}}
  pgkp.observe @g[%m]
  return
}

// -----

func.func private @f(%x: tensor<?xf32>, %m: index) {
  // expected-error@+1 {{'pgkp.observe' op 'f' is not an entry; expected a public function with a body and a tensor or memref argument}}
  pgkp.observe @f[%m]
  return
}

// -----

func.func @f(%x: tensor<?x?xf32> {pgkp.dims = ["a", "b"]}, %m: index) {
  // expected-error@+1 {{'pgkp.observe' op has 1 roots; entry 'f' has 2: [a, b]}}
  pgkp.observe @f[%m]
  return
}

// -----

//===-- attributes of functions --------------------------------------------===//

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dims' must be an array of strings}}
func.func private @f(tensor<?xf32> {pgkp.dims = "a"})

// -----

// expected-error@+1 {{'func.func' op argument #1: 'pgkp.dims' has 1 names; expected 2, one per dimension of 'tensor<?x4xf32>'}}
func.func private @f(f32, tensor<?x4xf32> {pgkp.dims = ["a"]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dims' names dimension 1 'b', which is static; expected ''}}
func.func private @f(tensor<?x4xf32> {pgkp.dims = ["a", "b"]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dims' has 'a b', which is not an identifier}}
func.func private @f(tensor<?xf32> {pgkp.dims = ["a b"]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dims' needs a ranked tensor or memref, got 'f32'}}
func.func private @f(f32 {pgkp.dims = []})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dims' needs a ranked tensor or memref, got 'tensor<*xf32>'}}
func.func private @f(tensor<*xf32> {pgkp.dims = []})

// -----

// expected-error@+1 {{'pgkp.kernel' op argument #0: 'pgkp.dims' names roots of an entry; a kernel binds its dimensions with 'args'}}
pgkp.kernel private @k(tensor<?xf32> {pgkp.dims = ["a"]}) -> tensor<?xf32> dims(m) args([m])

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.persistent' must be a unit attribute}}
func.func private @f(tensor<?xf32> {pgkp.persistent = 1})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.persistent' needs a tensor or memref, got 'f32'}}
func.func private @f(f32 {pgkp.persistent})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.range' needs a tensor or memref of integers, got 'tensor<?xf32>'}}
func.func private @f(tensor<?xf32> {pgkp.range = [0, 1]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.range' must be two 64-bit integers [lower, upper]}}
func.func private @f(tensor<?xi32> {pgkp.range = [0]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.range' is [2, 1]; expected lower <= upper}}
func.func private @f(tensor<?xi32> {pgkp.range = [2, 1]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.range' is [0, 256], which does not fit 'i8'}}
func.func private @f(tensor<?xi8> {pgkp.range = [0, 256]})

// -----

// expected-error@+1 {{'func.func' op argument #0: 'pgkp.dim' is unknown; expected pgkp.dims, pgkp.persistent or pgkp.range}}
func.func @f(%x: tensor<?xf32> {pgkp.dim = ["a"]}) {
  return
}

// -----

// expected-error@+1 {{'func.func' op result #0: 'pgkp.dims' is unknown; expected pgkp.carries}}
func.func @f(%x: tensor<?xf32>) -> (tensor<?xf32> {pgkp.dims = ["a"]}) {
  return %x : tensor<?xf32>
}

// -----

// expected-error@+1 {{'func.func' op result #0: 'pgkp.carries' must be a 64-bit integer}}
func.func private @f(tensor<?xf32> {pgkp.persistent}) -> (tensor<?xf32> {pgkp.carries = 0 : i32})

// -----

// expected-error@+1 {{'func.func' op result #0: 'pgkp.carries' refers to argument #1; the function has 1}}
func.func private @f(tensor<?xf32> {pgkp.persistent}) -> (tensor<?xf32> {pgkp.carries = 1 : i64})

// -----

// expected-error@+1 {{'func.func' op result #0: 'pgkp.carries' refers to argument #0, which is not pgkp.persistent}}
func.func private @f(tensor<?xf32>) -> (tensor<?xf32> {pgkp.carries = 0 : i64})

// -----

// expected-error@+1 {{'func.func' op result #0: 'pgkp.carries' refers to argument #0 of type 'tensor<?xf32>', which cannot take a value of type 'tensor<?xf16>'}}
func.func private @f(tensor<?xf32> {pgkp.persistent}) -> (tensor<?xf16> {pgkp.carries = 0 : i64})

// -----

// expected-error@+1 {{'func.func' op result #1: 'pgkp.carries' refers to argument #0, which result #0 carries already}}
func.func private @f(tensor<?xf32> {pgkp.persistent}) -> (tensor<?xf32> {pgkp.carries = 0 : i64}, tensor<?xf32> {pgkp.carries = 0 : i64})

// -----

// expected-error@+1 {{'pgkp.kernel' op result #0: 'pgkp.carries' is not allowed on a kernel}}
pgkp.kernel private @k(tensor<?xf32>) -> (tensor<?xf32> {pgkp.carries = 0 : i64}) dims(m) args([m])

// -----

// expected-error@+1 {{'builtin.module' op 'pgkp.roots' is allowed on functions only}}
module attributes {pgkp.roots = ["a"]} {}

// -----

// expected-error@+1 {{'func.func' op 'pgkp.roots' must be an array of strings}}
func.func private @f() attributes {pgkp.roots = "a"}

// -----

// expected-error@+1 {{'func.func' op 'pgkp.roots' lists 'a' twice}}
func.func private @f() attributes {pgkp.roots = ["a", "a"]}

// -----

// expected-error@+1 {{'func.func' op 'pgkp.roots' has '', which is not an identifier}}
func.func private @f() attributes {pgkp.roots = [""]}
