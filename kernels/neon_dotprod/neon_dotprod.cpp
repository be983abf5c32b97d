#include "kernels/table.h"
namespace mnm::kernels {
void install_neon_dotprod(Kernels& table) noexcept;
void install_neon_dotprod(Kernels&) noexcept {}
}
