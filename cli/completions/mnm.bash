eval "$(mnm completion bash)"
