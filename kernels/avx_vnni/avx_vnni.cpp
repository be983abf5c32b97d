#include "kernels/table.h"
namespace mnm::kernels {
void install_avx_vnni(Kernels& table) noexcept;
void install_avx_vnni(Kernels&) noexcept {}
}
