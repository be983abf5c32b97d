#include "kernels/table.h"
namespace mnm::kernels {
void install_portable(Kernels& table) noexcept;
void install_portable(Kernels&) noexcept {}
}
