#include "kernels/table.h"
namespace mnm::kernels {
void install_avx512_vnni(Kernels& table) noexcept;
void install_avx512_vnni(Kernels&) noexcept {}
}
