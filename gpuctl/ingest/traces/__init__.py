"""Published traces of clusters: tables that a declaration of their columns is enough to read."""
