mnm completion fish | source
