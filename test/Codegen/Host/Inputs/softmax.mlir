pgkp.kernel private @softmax(%x: tensor<?x?xf32>, %o: tensor<?x?xf32>) -> tensor<?x?xf32>
    dims(m, n) args([m, n], [m, n]) {
  %r = linalg.softmax dimension(1) ins(%x : tensor<?x?xf32>) outs(%o : tensor<?x?xf32>) -> tensor<?x?xf32>
  pgkp.return %r : tensor<?x?xf32>
}
