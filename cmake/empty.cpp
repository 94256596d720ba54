// A translation unit for targets that only carry precompiled headers.
