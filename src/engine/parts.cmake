# What the files of the engine may include inside it; the first pattern that matches a file decides.
# A plan and an op's description know no backend, a backend knows no other, and ops do not know each
# other. Fused ops are made of the others.
fathom_part(engine/plan/* USES engine engine/ops)
fathom_part(engine/plan/*/* USES engine engine/plan engine/ops)
fathom_part(engine/ref/* USES engine engine/plan engine/ops)
fathom_part(engine/cpu/* USES engine engine/plan engine/ops)
fathom_part(engine/cuda/* USES engine engine/cuda engine/plan engine/ops)
fathom_part(engine/cuda/*/* USES engine engine/cuda engine/plan engine/ops)
fathom_part(engine/ops/fused/*_ref.* USES engine engine/plan engine/ref engine/ops)
fathom_part(engine/ops/fused/*_cpu.* USES engine engine/plan engine/cpu engine/ops)
fathom_part(engine/ops/fused/*_cuda.* USES engine engine/plan engine/cuda engine/ops)
fathom_part(engine/ops/fused/* USES engine engine/plan engine/ops)
fathom_part(engine/ops/*/*_ref.* USES engine engine/plan engine/ref)
fathom_part(engine/ops/*/*_cpu.* USES engine engine/plan engine/cpu)
fathom_part(engine/ops/*/*_simd.* USES engine engine/plan engine/cpu)
fathom_part(engine/ops/attention/attention_blocks.h USES engine engine/plan engine/cpu)
fathom_part(engine/ops/*/*_cuda.* USES engine engine/plan engine/cuda)
fathom_part(engine/ops/*/* USES engine engine/plan)
# The room's front: it picks a backend.
fathom_part(engine/device.* USES engine/plan engine/cpu engine/cuda)
fathom_part(engine/* USES engine/plan)
