// Every command of the program, one file each.
#pragma once

namespace fathom {

class CommandTree;

void add_plan_command(CommandTree& tree);
void add_shape_command(CommandTree& tree);
void add_bounds_command(CommandTree& tree);
void add_data_command(CommandTree& tree);
void add_completion_command(CommandTree& tree);
void add_man_command(CommandTree& tree);

}  // namespace fathom
