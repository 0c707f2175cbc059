"""What compiled code needs: the compiler, its cache, and bundles of arrays that it takes as one pointer."""
