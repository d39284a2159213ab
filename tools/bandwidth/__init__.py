"""What the benchmark of bandwidth and the kernel's tests share: namespaces, a guest, traffic, single packets."""
