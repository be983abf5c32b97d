#include "kernels/table.h"
namespace mnm::kernels {
void install_avx_vnni_int8(Kernels& table) noexcept;
void install_avx_vnni_int8(Kernels&) noexcept {}
}
