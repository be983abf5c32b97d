#include "kernels/table.h"
namespace mnm::kernels {
void install_avx2(Kernels& table) noexcept;
void install_avx2(Kernels&) noexcept {}
}
