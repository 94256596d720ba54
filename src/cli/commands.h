// Every command of the program, one file each.
#pragma once

namespace fathom {

class Command;
class CommandTree;

void add_all_commands(CommandTree& tree);

void add_plan_command(CommandTree& tree);
void add_shape_command(CommandTree& tree);
void add_compare_command(CommandTree& tree);
void add_bounds_command(CommandTree& tree);
void add_data_command(CommandTree& tree);
void add_rank_command(CommandTree& tree);
void add_rank_table_command(CommandTree& tree, Command& parent);
void add_train_command(CommandTree& tree);
void add_bench_command(CommandTree& tree);
void add_study_command(CommandTree& tree);
void add_lab_command(CommandTree& tree);
void add_probe_command(CommandTree& tree);
void add_serve_command(CommandTree& tree);
void add_doctor_command(CommandTree& tree);
void add_eval_command(CommandTree& tree);
void add_generate_command(CommandTree& tree);
void add_export_command(CommandTree& tree);
void add_import_command(CommandTree& tree);
void add_completion_command(CommandTree& tree);
void add_man_command(CommandTree& tree);
/// Comes last: it knows the commands before it.
void add_help_command(CommandTree& tree);

}  // namespace fathom
